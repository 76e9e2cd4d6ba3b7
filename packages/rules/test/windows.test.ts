import fc from 'fast-check';
import t from 'tap';
import { calendarUnits, Windows } from '../src/match/windows.ts';

const seconds = (instant: string): number => Date.parse(instant) / 1000;
const instant = (unixSeconds: number): string => new Date(unixSeconds * 1000).toISOString().slice(0, 19);

/** Window of a time, as instants in UTC. */
function windowOf(windows: Windows, at: string): string {
  const { start, end } = windows.at(seconds(at));
  return `${instant(start)} ${instant(end)} ${windows.currentSeconds / 3600}h`;
}

t.test('windows of a period are aligned to the epoch and named by their length', async (t) => {
  const windows = Windows.ofPeriod(300);
  t.same(windows.at(1_000_000), { start: 999_900, end: 1_000_200 });
  t.same(windows.at(1_000_200), { start: 1_000_200, end: 1_000_500 });
  t.same(windows.at(1_000_199), { start: 999_900, end: 1_000_200 });
  t.match(windows, { label: '5m', timeZone: undefined, currentSeconds: 300 });
  t.equal(Windows.ofPeriod(60).label, '1m');
});

t.test('calendar windows follow the local clocks', async (t) => {
  const cases: readonly [(typeof calendarUnits)[number], string, string, string][] = [
    ['day', 'Europe/Berlin', '2026-01-15T12:00:00Z', '2026-01-14T23:00:00 2026-01-15T23:00:00 24h'],
    ['day', 'Europe/Berlin', '2026-03-29T12:00:00Z', '2026-03-28T23:00:00 2026-03-29T22:00:00 23h'],
    ['day', 'Europe/Berlin', '2026-10-25T12:00:00Z', '2026-10-24T22:00:00 2026-10-25T23:00:00 25h'],
    ['week', 'UTC', '2026-11-22T23:59:59Z', '2026-11-16T00:00:00 2026-11-23T00:00:00 168h'],
    ['week', 'UTC', '2026-11-23T00:00:00Z', '2026-11-23T00:00:00 2026-11-30T00:00:00 168h'],
    ['month', 'UTC', '2028-02-29T23:59:59Z', '2028-02-01T00:00:00 2028-03-01T00:00:00 696h'],
    ['month', 'America/New_York', '2026-11-15T00:00:00Z', '2026-11-01T04:00:00 2026-12-01T05:00:00 721h'],
    ['year', 'Asia/Tokyo', '2026-12-31T15:00:00Z', '2026-12-31T15:00:00 2027-12-31T15:00:00 8760h'],
    // No 30th of December: the zone crossed the date line.
    ['day', 'Pacific/Apia', '2011-12-30T09:59:59Z', '2011-12-29T10:00:00 2011-12-30T10:00:00 24h'],
    ['day', 'Pacific/Apia', '2011-12-30T10:00:00Z', '2011-12-30T10:00:00 2011-12-31T10:00:00 24h'],
    // Clocks skipped midnight, and the day began at 1:00.
    ['day', 'America/Sao_Paulo', '2018-11-04T12:00:00Z', '2018-11-04T03:00:00 2018-11-05T02:00:00 23h'],
    // At 0:01 clocks were set back to 23:01 of the day before.
    ['day', 'America/St_Johns', '2010-11-07T03:00:00Z', '2010-11-07T02:30:00 2010-11-08T03:30:00 25h'],
  ];
  for (const [unit, zone, at, expected] of cases) {
    t.equal(windowOf(Windows.ofCalendar(unit, zone), at), expected, `${unit} of ${zone} at ${at}`);
  }
  t.equal(Windows.ofCalendar('day', 'Europe/Berlin').label, 'day_Europe/Berlin');
  t.throws(() => Windows.ofCalendar('day', '+01:00'), RangeError);
  t.throws(() => Windows.ofCalendar('day', 'Europe/Nowhere'), RangeError);
});

/** Times at which clocks changed, most of them around midnight. */
const changes: readonly (readonly [zone: string, at: string])[] = [
  ['Europe/Berlin', '2026-10-25T01:00:00Z'],
  ['Europe/Berlin', '2026-03-29T01:00:00Z'],
  ['Pacific/Apia', '2011-12-30T10:00:00Z'],
  ['Pacific/Kwajalein', '1993-08-21T12:00:00Z'],
  ['America/Sao_Paulo', '2018-11-04T03:00:00Z'],
  ['America/Sao_Paulo', '2018-02-18T02:00:00Z'],
  ['America/St_Johns', '2010-11-07T02:31:00Z'],
  ['America/Havana', '2026-11-01T05:00:00Z'],
  ['Asia/Beirut', '2026-03-28T22:00:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T15:00:00Z'],
];

/** Local dates as text of equal length, which sorts as dates do. */
function localDates(zone: string): (unixSeconds: number) => string {
  const format = new Intl.DateTimeFormat('sv-SE', {
    timeZone: zone,
    ...{ year: 'numeric', month: '2-digit', day: '2-digit' },
  });
  return (unixSeconds) => format.format(unixSeconds * 1000);
}

/** The first date of the period that a local date is in. */
function firstDate(unit: (typeof calendarUnits)[number], date: string): string {
  if (unit === 'year') return `${date.slice(0, 4)}-01-01`;
  if (unit === 'month') return `${date.slice(0, 7)}-01`;
  const midnight = new Date(`${date}T00:00:00Z`);
  if (unit === 'week') midnight.setUTCDate(midnight.getUTCDate() - ((midnight.getUTCDay() + 6) % 7));
  return midnight.toISOString().slice(0, 10);
}

t.test('calendar windows join without a gap where clocks first show the next date', async (t) => {
  const zones = Intl.supportedValuesOf('timeZone');
  const dates = new Map(zones.map((zone) => [zone, localDates(zone)]));
  const anywhere = fc.tuple(fc.constantFrom(...zones), fc.integer({ min: 400 * 86_400, max: 4_000_000_000 }));
  const aroundChange = fc
    .tuple(fc.constantFrom(...changes), fc.integer({ min: -93_600, max: 93_600 }))
    .map(([[zone, at], offset]): [string, number] => [zone, seconds(at) + offset]);
  const when = fc.record({
    place: fc.oneof(anywhere, aroundChange),
    unit: fc.constantFrom(...calendarUnits),
    within: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
  });
  const property = fc.property(when, ({ place: [zone, now], unit, within }) => {
    const dateAt = dates.get(zone) ?? localDates(zone);
    const windows = Windows.ofCalendar(unit, zone);
    const { start, end } = windows.at(now);
    const inside = start + Math.floor(within * (end - start));
    const first = firstDate(unit, dateAt(start));
    return (
      start <= now &&
      now < end &&
      dateAt(start - 1) < first &&
      firstDate(unit, dateAt(end - 1)) <= first &&
      firstDate(unit, dateAt(end)) > first &&
      firstDate(unit, dateAt(inside)) <= first &&
      windows.at(inside).start === start &&
      windows.at(end).start === end &&
      windows.at(start - 1).end === start
    );
  });
  t.equal(fc.check(property, { numRuns: 3000 }).counterexample, null);
});
