import t from 'tap';
import { checkRequest, maxDescriptors } from '../../src/domain/check-request.ts';
import { descriptor } from '../support/make-decider.ts';

const one = [descriptor({ a: 'b' })];

t.test('a request with a domain and a descriptor is sound', async (t) => {
  t.equal(checkRequest({ domain: 'd', descriptors: one, hitsAddend: 0 }), undefined);
  t.equal(checkRequest({ domain: 'd', descriptors: [descriptor({})], hitsAddend: 0 }), undefined);
});

t.test('an empty domain is found before missing descriptors', async (t) => {
  t.match(checkRequest({ domain: '', descriptors: [], hitsAddend: 0 }), { code: 'empty_domain' });
  t.match(checkRequest({ domain: 'd', descriptors: [], hitsAddend: 0 }), { code: 'no_descriptors' });
});

t.test('an override must have a unit', async (t) => {
  const limit = (unit: number) => descriptor({}, { limit: { requestsPerUnit: 1, unit } });
  t.equal(checkRequest({ domain: 'd', descriptors: [limit(1), limit(7)], hitsAddend: 0 }), undefined);
  t.match(checkRequest({ domain: 'd', descriptors: [limit(1), limit(0)], hitsAddend: 0 }), {
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
  t.equal(checkRequest(many(maxDescriptors)), undefined);
  t.match(checkRequest(many(maxDescriptors + 1)), { code: 'too_many_descriptors', message: /1000.*1001/ });
});
