// The time zone of this browser, for the server to show times in from the next page on.
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const pair = `plimsoll_zone=${zone}`;
  if (!zone || document.cookie.split("; ").includes(pair)) return;
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${pair}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;
})();
