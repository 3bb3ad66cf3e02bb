-- Two roles for one database: the first owns and migrates its tables, the second runs the service and can neither change
-- nor remove what the ledger wrote (`corevaultd migrate --service-role` says what else it may). Run once, by a superuser.
-- The passwords are read by psql itself, so that no command line and no environment shows them.
\set ON_ERROR_STOP on
\set owner_password `cat /run/secrets/owner_password`
\set service_password `cat /run/secrets/service_password`
CREATE ROLE corevault_owner LOGIN PASSWORD :'owner_password';
CREATE ROLE corevault_service LOGIN PASSWORD :'service_password';
REVOKE ALL ON DATABASE corevault FROM PUBLIC;
ALTER DATABASE corevault OWNER TO corevault_owner;
GRANT CONNECT ON DATABASE corevault TO corevault_service;
