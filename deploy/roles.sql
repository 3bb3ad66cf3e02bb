-- Two roles for one database. The first owns and migrates its tables. The second runs the service, and can neither
-- change nor delete ledger entries; `corevaultd migrate --service-role` grants its rights. A superuser runs this file once.
-- psql reads the passwords from files, so no command line and no environment variable contains them.
\set ON_ERROR_STOP on
\set owner_password `cat /run/secrets/owner_password`
\set service_password `cat /run/secrets/service_password`
CREATE ROLE corevault_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE corevault_service LOGIN PASSWORD :'service_password';
REVOKE ALL ON DATABASE corevault FROM PUBLIC;
ALTER DATABASE corevault OWNER TO corevault_owner;
GRANT CONNECT ON DATABASE corevault TO corevault_service;
