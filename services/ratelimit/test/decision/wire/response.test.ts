import t from 'tap';
import { getOverallCode } from '../../../src/decision/evaluate.ts';
import { Code, type DescriptorStatus } from '../../../src/decision/wire/response.ts';

const ok: DescriptorStatus = { code: Code.OK, limitRemaining: 0, quota: false };
const over: DescriptorStatus = { code: Code.OVER_LIMIT, limitRemaining: 0, quota: false };
const quota: DescriptorStatus = { code: Code.OK, limitRemaining: 0, quota: true };
const quotaOver: DescriptorStatus = { code: Code.OVER_LIMIT, limitRemaining: 0, quota: true };

t.test('one descriptor over its limit is enough', async (t) => {
  t.equal(getOverallCode([ok, ok]), Code.OK);
  t.equal(getOverallCode([ok, over, ok]), Code.OVER_LIMIT);
  t.equal(getOverallCode([quota, over]), Code.OVER_LIMIT, 'whatever is left of quotas');
});

t.test('quotas are over only together', async (t) => {
  t.equal(getOverallCode([quotaOver]), Code.OVER_LIMIT);
  t.equal(getOverallCode([quotaOver, quotaOver]), Code.OVER_LIMIT);
  t.equal(getOverallCode([quotaOver, quota]), Code.OK);
  t.equal(getOverallCode([quota, quotaOver]), Code.OK);
  t.equal(getOverallCode([ok, quotaOver]), Code.OVER_LIMIT, 'a descriptor outside quota mode is not a quota');
});

t.test('without descriptors the overall code is OK', async (t) => {
  t.equal(getOverallCode([]), Code.OK);
});
