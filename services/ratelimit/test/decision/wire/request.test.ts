import t from 'tap';
import {
  type Descriptor,
  getHitsAddend,
  maxDescriptors,
  unitFromWire,
  unitToWire,
  validateRequest,
} from '../../../src/decision/wire/request.ts';
import { descriptor } from '../../support/make-decider.ts';

const one = [descriptor({ a: 'b' })];

t.test('a request with a domain and a descriptor is valid', async (t) => {
  t.equal(validateRequest({ domain: 'd', descriptors: one, hitsAddend: 0 }), undefined);
  t.equal(validateRequest({ domain: 'd', descriptors: [descriptor({})], hitsAddend: 0 }), undefined);
});

t.test('an empty domain is reported before missing descriptors', async (t) => {
  t.match(validateRequest({ domain: '', descriptors: [], hitsAddend: 0 }), { code: 'empty_domain' });
  t.match(validateRequest({ domain: 'd', descriptors: [], hitsAddend: 0 }), { code: 'no_descriptors' });
});

t.test('an override must have a unit', async (t) => {
  const limit = (unit: number) => descriptor({}, { limit: { requestsPerUnit: 1, unit } });
  t.equal(validateRequest({ domain: 'd', descriptors: [limit(1), limit(7)], hitsAddend: 0 }), undefined);
  t.match(validateRequest({ domain: 'd', descriptors: [limit(1), limit(0)], hitsAddend: 0 }), {
    code: 'invalid_override',
    message: /^descriptors\[1\]\.limit\.unit/,
  });
});

t.test('descriptors are bounded in number', async (t) => {
  const many = (count: number) => ({
    domain: 'd',
    descriptors: new Array(count).fill(one[0]),
    hitsAddend: 0,
  });
  t.equal(validateRequest(many(maxDescriptors)), undefined);
  t.match(validateRequest(many(maxDescriptors + 1)), { code: 'too_many_descriptors', message: /1000.*1001/ });
});

function hits(ofRequest: number, more: Omit<Descriptor, 'entries'> = {}): number {
  return getHitsAddend({ domain: 'd', descriptors: [], hitsAddend: ofRequest }, { entries: [], ...more });
}

t.test('without hits in the descriptor those of the request apply, at least 1', async (t) => {
  t.equal(hits(0), 1);
  t.equal(hits(1), 1);
  t.equal(hits(5), 5);
  t.equal(hits(4_294_967_295), 4_294_967_295);
});

t.test("the descriptor's number takes precedence, including 0", async (t) => {
  t.equal(hits(5, { hitsAddend: 3n }), 3);
  t.equal(hits(5, { hitsAddend: 0n }), 0);
});

t.test('negative hits add nothing', async (t) => {
  t.equal(hits(5, { hitsAddend: 3n, isNegativeHits: true }), -3);
  t.equal(hits(5, { isNegativeHits: true }), -5);
  t.equal(hits(5, { hitsAddend: 0n, isNegativeHits: true }), 0);
  t.equal(hits(5, { hitsAddend: 3n, isNegativeHits: false }), 3);
});

t.test('more hits than any limit are reduced to 2^32', async (t) => {
  t.equal(hits(0, { hitsAddend: 2n ** 32n - 1n }), 2 ** 32 - 1);
  t.equal(hits(0, { hitsAddend: 2n ** 32n }), 2 ** 32);
  t.equal(hits(0, { hitsAddend: 2n ** 64n - 1n }), 2 ** 32);
});

t.test('units are converted to wire numbers and back', async (t) => {
  const numbers = { second: 1, minute: 2, hour: 3, day: 4, month: 5, year: 6, week: 7 } as const;
  for (const [unit, number] of Object.entries(numbers)) {
    t.equal(unitFromWire(number), unit);
  }
  t.equal(unitToWire('second'), 1);
  t.equal(unitToWire('week'), 7);
});

t.test('invalid unit numbers are undefined', async (t) => {
  for (const number of [0, 8, -1, 1.5, 4_294_967_295]) {
    t.equal(unitFromWire(number), undefined, String(number));
  }
});
