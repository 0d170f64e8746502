// The time zone of this browser, for the server to show times in from the next answer on. The page at hand was drawn
// without it, in UTC: its times are put right here.
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const pair = `plimsoll_zone=${zone}`;
  if (!zone || document.cookie.split("; ").includes(pair)) return;
  const secure = location.protocol === "https:" ? "; Secure" : "";
  document.cookie = `${pair}; Path=/; Max-Age=31536000; SameSite=Lax${secure}`;

  const MOMENT = /^\d{4}-\d\d-\d\d \d\d:\d\d$/; // as dashboard/templatetags/plimsoll.py writes it; others are distances
  const twoDigits = (number) => String(number).padStart(2, "0");
  const names = new Intl.DateTimeFormat("en", { timeZoneName: "short" });

  for (const place of document.querySelectorAll("time[datetime]")) {
    const at = new Date(place.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const day = [at.getFullYear(), twoDigits(at.getMonth() + 1), twoDigits(at.getDate())].join("-");
    const moment = `${day} ${twoDigits(at.getHours())}:${twoDigits(at.getMinutes())}`;
    const name = names.formatToParts(at).find((part) => part.type === "timeZoneName")?.value ?? zone;
    if (place.title) place.title = `${moment}:${twoDigits(at.getSeconds())} ${name}`;
    if (MOMENT.test(place.textContent)) place.textContent = moment;
  }
})();
