/** The length of a fixed rate limit window, as rule files spell it. */
export type Unit = 'second' | 'minute' | 'hour' | 'day' | 'week' | 'month' | 'year';

/**
 * Length of each unit in seconds. Windows are fixed and start at the epoch, so a month is always 30 days
 * (2592000 s) and a year 365 days (31536000 s).
 */
export const unitSeconds: Readonly<Record<Unit, number>> = {
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86_400,
  week: 604_800,
  month: 2_592_000,
  year: 31_536_000,
};

const isUnit = (text: string): text is Unit => Object.hasOwn(unitSeconds, text);

/** Reads a unit without regard to case. `unknown`, empty and any other text give undefined. */
export function parseUnit(text: string): Unit | undefined {
  if (isUnit(text)) return text;
  const lower = text.toLowerCase();
  return isUnit(lower) ? lower : undefined;
}
