// Keeps forms from being sent again while the server still answers, as a double click would.

/** Send a form once, until the page is shown again. */
export function sendOnce(form) {
  let isSent = false;
  form.addEventListener("submit", (event) => {
    if (isSent) event.preventDefault();
    isSent = true;
  });
  addEventListener("pageshow", () => {
    isSent = false;
  });
}

document.querySelectorAll("form[data-once]").forEach(sendOnce);
