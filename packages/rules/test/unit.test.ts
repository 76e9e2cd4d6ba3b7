import t from 'tap';
import { parseUnit, unitSeconds } from '../src/rule-set.ts';

t.test('every unit is read in any case', async (t) => {
  for (const unit of ['second', 'minute', 'hour', 'day', 'week', 'month', 'year']) {
    t.equal(parseUnit(unit), unit);
    t.equal(parseUnit(unit.toUpperCase()), unit);
  }
});

t.test('unknown, empty and inherited names are no units', async (t) => {
  for (const text of ['unknown', '', 'seconds', 'constructor', '__proto__', ' day'])
    t.equal(parseUnit(text), undefined);
});

t.test('windows are fixed: a month is 30 days, a year 365', async (t) => {
  t.same(Object.values(unitSeconds), [1, 60, 3600, 86_400, 604_800, 2_592_000, 31_536_000]);
});
