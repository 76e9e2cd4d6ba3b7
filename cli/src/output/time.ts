const units = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
  ['s', 1],
] as const;

/** A time as people say it: `in 52 min`, `3 d ago`. */
export function relativeTime(atMs: number, nowMs: number): string {
  const seconds = Math.round((atMs - nowMs) / 1000);
  const length = Math.abs(seconds);
  const [unit, size] = units.find(([, unitSeconds]) => length >= unitSeconds) ?? units[3];
  const text = `${Math.floor(length / size)} ${unit}`;
  return seconds >= 0 ? `in ${text}` : `${text} ago`;
}
