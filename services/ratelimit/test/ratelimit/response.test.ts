import t from 'tap';
import { Code, type CodeVote, overallCode } from '../../src/ratelimit/response.ts';

const ok: CodeVote = { code: Code.OK, quota: false };
const over: CodeVote = { code: Code.OVER_LIMIT, quota: false };
const quota: CodeVote = { code: Code.OK, quota: true };
const quotaOver: CodeVote = { code: Code.OVER_LIMIT, quota: true };

t.test('one ordinary descriptor over its limit is enough', async (t) => {
  t.equal(overallCode([ok, ok]), Code.OK);
  t.equal(overallCode([ok, over, ok]), Code.OVER_LIMIT);
  t.equal(overallCode([quota, over]), Code.OVER_LIMIT, 'whatever is left of quotas');
});

t.test('of quotas, all have to be over', async (t) => {
  t.equal(overallCode([quotaOver]), Code.OVER_LIMIT);
  t.equal(overallCode([quotaOver, quotaOver]), Code.OVER_LIMIT);
  t.equal(overallCode([quotaOver, quota]), Code.OK);
  t.equal(overallCode([quota, quotaOver]), Code.OK);
  t.equal(
    overallCode([ok, quotaOver]),
    Code.OVER_LIMIT,
    'an ordinary descriptor is no quota that has something left',
  );
});

t.test('without any descriptor the answer is OK', async (t) => {
  t.equal(overallCode([]), Code.OK);
});
