// Shows times in the reader's language and time zone, with UTC beside. Without scripts, pages show UTC.

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** Change the times in a part of the page. */
export function localise(part) {
  for (const time of part.querySelectorAll("time[datetime]:not([data-utc])")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.valueOf())) continue;
    const utc = document.createElement("span");
    utc.className = "utc";
    utc.textContent = `(${time.textContent} UTC)`;
    time.dataset.utc = time.textContent;
    const local = document.createElement("span");
    local.className = "local";
    local.textContent = LOCAL.format(at);
    time.replaceChildren(local, " ", utc); // a line may break at the space only
  }
}

const zone = document.querySelector("#zone");
if (zone) {
  const name = LOCAL.resolvedOptions().timeZone;
  zone.textContent = `Times are in your time zone, ${name}, with UTC in brackets. Charts and filters are in UTC.`;
}
localise(document);
