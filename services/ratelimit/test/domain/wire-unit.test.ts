import t from 'tap';
import { unitOfWire, wireOfUnit } from '../../src/domain/wire-unit.ts';

t.test('units have the numbers of the wire, and the way back', async (t) => {
  const numbers = { second: 1, minute: 2, hour: 3, day: 4, month: 5, year: 6, week: 7 } as const;
  for (const [unit, number] of Object.entries(numbers)) {
    t.equal(unitOfWire(number), unit);
  }
  t.equal(wireOfUnit('second'), 1);
  t.equal(wireOfUnit('week'), 7);
});

t.test('numbers that are no unit are none', async (t) => {
  for (const number of [0, 8, -1, 1.5, 4_294_967_295]) {
    t.equal(unitOfWire(number), undefined, String(number));
  }
});
