import { formatDuration } from '@tollgate/kit/time';
import type { Unit } from './rule-set.ts';

/** A fixed window, in Unix seconds; the end is exclusive. */
interface Window {
  readonly start: number;
  readonly end: number;
}

/** Units whose windows can follow the calendar of a time zone. */
export const calendarUnits = ['day', 'week', 'month', 'year'] as const satisfies readonly Unit[];
type CalendarUnit = (typeof calendarUnits)[number];

export function isCalendarUnit(unit: Unit | undefined): unit is CalendarUnit {
  return calendarUnits.some((known) => known === unit);
}

/**
 * Fixed windows other than those of a unit: of any length, or by a calendar. The current window is
 * remembered, because finding one in a calendar takes about 20 µs.
 */
export class Windows {
  /**
   * Tells the counters from those of other windows that start at the same time; empty for those
   * that envoyproxy/ratelimit has.
   */
  readonly label: string;
  /** Undefined for windows of any length, which are aligned to the epoch. */
  readonly timeZone: string | undefined;
  readonly #find: (nowSeconds: number) => Window;
  /** Windows of all units of the calendar; undefined without a time zone of a rule. */
  readonly #siblings: Siblings | undefined;
  #current: Window = { start: 0, end: 0 };

  private constructor(label: string, find: (nowSeconds: number) => Window, calendar: Calendar = {}) {
    this.label = label;
    this.timeZone = calendar.timeZone;
    this.#find = find;
    this.#siblings = calendar.siblings;
  }

  static ofPeriod(seconds: number): Windows {
    return new Windows(formatPeriod(seconds), (nowSeconds) => {
      const start = nowSeconds - (nowSeconds % seconds);
      return { start, end: start + seconds };
    });
  }

  /** @throws RangeError when the zone is not known. */
  static ofCalendar(unit: CalendarUnit, timeZone: string): Windows {
    if (/^[-+]/.test(timeZone)) throw new RangeError('an offset such as +01:00 is not a time zone');
    return Windows.#ofClock(unit, timeZone, { clock: new LocalClock(timeZone), byUnit: new Map() });
  }

  static #ofClock(unit: CalendarUnit, timeZone: string, siblings: Siblings): Windows {
    const { clock, byUnit } = siblings;
    const find = (nowSeconds: number): Window => findInCalendar(clock, unit, nowSeconds);
    const windows = new Windows(`${unit}_${timeZone}`, find, { timeZone, siblings });
    byUnit.set(unit, windows);
    return windows;
  }

  /** Calendar months in UTC, whose counters have the keys of a unit. */
  static ofUtcMonths(): Windows {
    const clock = new LocalClock('UTC');
    return new Windows('', (nowSeconds) => findInCalendar(clock, 'month', nowSeconds), { timeZone: 'UTC' });
  }

  /**
   * Windows of another unit in the same time zone. Undefined for units that no calendar has, and
   * where the windows do not follow the time zone of a rule.
   */
  ofUnit(unit: Unit): Windows | undefined {
    if (this.#siblings === undefined || this.timeZone === undefined || !isCalendarUnit(unit))
      return undefined;
    return this.#siblings.byUnit.get(unit) ?? Windows.#ofClock(unit, this.timeZone, this.#siblings);
  }

  /** The window of a time, in whole Unix seconds. */
  at(nowSeconds: number): Window {
    if (nowSeconds < this.#current.start || nowSeconds >= this.#current.end) {
      this.#current = this.#find(nowSeconds);
    }
    return this.#current;
  }

  /** Length of the window that was last asked for: 23 to 25 hours for a day. */
  get currentSeconds(): number {
    return this.#current.end - this.#current.start;
  }
}

/** Windows of one time zone share it: finding a clock takes longer than a decision. */
interface Siblings {
  readonly clock: LocalClock;
  readonly byUnit: Map<CalendarUnit, Windows>;
}

interface Calendar {
  readonly timeZone?: string;
  readonly siblings?: Siblings;
}

/** The length of a window as text: `5m`, `1h30m`. */
export function formatPeriod(seconds: number): string {
  return formatDuration(seconds * 1000);
}

/**
 * The window begins when local clocks first show its first midnight (or a later time, where
 * midnight is skipped).
 */
function findInCalendar(clock: LocalClock, unit: CalendarUnit, nowSeconds: number): Window {
  let first = startOf(unit, clock.read(nowSeconds));
  let next = nextOf(unit, first);
  let end = clock.findFirst(next);
  // Clocks that are set back over midnight show the day before for the second time, and a zone that
  // crosses the date line skips a day.
  while (end <= nowSeconds) {
    first = next;
    next = nextOf(unit, first);
    end = clock.findFirst(next);
  }
  return { start: clock.findFirst(first), end };
}

const daySeconds = 86_400;

/** Start of the local day, week (Monday), month or year of a local time. */
function startOf(unit: CalendarUnit, localSeconds: number): number {
  const midnight = localSeconds - (((localSeconds % daySeconds) + daySeconds) % daySeconds);
  if (unit === 'day') return midnight;
  const date = new Date(midnight * 1000);
  if (unit === 'week') return midnight - ((date.getUTCDay() + 6) % 7) * daySeconds;
  const [year, month] = readDate(date);
  return Date.UTC(year, unit === 'month' ? month - 1 : 0) / 1000;
}

/** Start of the next one, of a start. */
function nextOf(unit: CalendarUnit, localStart: number): number {
  if (unit === 'day') return localStart + daySeconds;
  if (unit === 'week') return localStart + 7 * daySeconds;
  const [year, month] = readDate(new Date(localStart * 1000));
  return (unit === 'month' ? Date.UTC(year, month) : Date.UTC(year + 1, 0)) / 1000;
}

/** Year and month, which starts at 1. */
function readDate(date: Date): [year: number, month: number] {
  const [year = 0, month = 0] = date.toISOString().split('-').map(Number);
  return [year, month];
}

/** Local time of a zone, written as Unix seconds are: `1970-01-01 00:00` local is 0. */
class LocalClock {
  readonly #format: Intl.DateTimeFormat;

  constructor(timeZone: string) {
    const number = 'numeric' as const;
    this.#format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      calendar: 'gregory',
      hourCycle: 'h23',
      ...{ year: number, month: number, day: number, hour: number, minute: number, second: number },
    });
  }

  read(seconds: number): number {
    const fields = { year: 0, month: 0, day: 0, hour: 0, minute: 0, second: 0 };
    for (const { type, value } of this.#format.formatToParts(seconds * 1000)) {
      if (type in fields) fields[type as keyof typeof fields] = Number(value);
    }
    const { year, month, day, hour, minute, second } = fields;
    return Date.UTC(year, month - 1, day, hour, minute, second) / 1000;
  }

  /**
   * When the clocks first show a local time or a later one. Assumes at most one change of the
   * offset within a day of it.
   */
  findFirst(localSeconds: number): number {
    const before = this.#offset(localSeconds - daySeconds);
    const withBefore = localSeconds - before;
    const after = this.#offset(withBefore);
    if (after === before) return withBefore;
    const withAfter = localSeconds - after;
    return this.#offset(withAfter) === after ? withAfter : this.#findChange(withAfter, withBefore, after);
  }

  #offset(seconds: number): number {
    return this.read(seconds) - seconds;
  }

  /** The first second, after `low` and up to `high`, with an offset. */
  #findChange(low: number, high: number, offset: number): number {
    let [without, having] = [low, high];
    while (having - without > 1) {
      const middle = Math.floor((without + having) / 2);
      if (this.#offset(middle) === offset) having = middle;
      else without = middle;
    }
    return having;
  }
}
