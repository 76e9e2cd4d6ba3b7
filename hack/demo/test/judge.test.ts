import t from 'tap';
import { type Answer, describe, type Expectation, guessCause, judge, toAnswer } from '../judge.ts';

const passes: Expectation = { status: 200, counter: { limit: 3, remaining: 2, windowSeconds: 3600 } };
const passed: Answer = { status: 200, limit: '3', remaining: '2', reset: '17', limitedBy: undefined };
const withoutHeaders: Answer = {
  status: 200,
  limit: undefined,
  remaining: undefined,
  reset: undefined,
  limitedBy: undefined,
};

t.test('an answer as expected has no differences', async (t) => {
  t.same(judge(passes, passed), []);
});

t.test('every difference is named with what was got and what was expected', async (t) => {
  const refused: Answer = { status: 429, limit: '1', remaining: '0', reset: '0', limitedBy: 'per-tenant' };
  t.same(judge(passes, refused), [
    'status is 429 instead of 200',
    'RateLimit-Limit is 1 instead of 3',
    'RateLimit-Remaining is 0 instead of 2',
    'RateLimit-Reset is 0 instead of 1 to 3600',
    'limited by is per-tenant instead of absent',
  ]);
});

t.test('headers that are missing are differences', async (t) => {
  t.same(judge(passes, withoutHeaders), [
    'RateLimit-Limit is absent instead of 3',
    'RateLimit-Remaining is absent instead of 2',
    'RateLimit-Reset is absent instead of 1 to 3600',
  ]);
});

t.test('headers where no limit is expected are differences', async (t) => {
  t.same(judge({ status: 200 }, withoutHeaders), []);
  t.same(judge({ status: 200 }, passed), [
    'RateLimit-Limit is 3 instead of absent',
    'RateLimit-Remaining is 2 instead of absent',
    'RateLimit-Reset is 17 instead of absent',
  ]);
});

t.test('the time until the reset is at most the window, and a whole number', async (t) => {
  t.same(judge(passes, { ...passed, reset: '1' }), []);
  t.same(judge(passes, { ...passed, reset: '3600' }), []);
  t.equal(judge(passes, { ...passed, reset: '3601' }).length, 1);
  t.equal(judge(passes, { ...passed, reset: '1.5' }).length, 1);
});

t.test('some requests left are any number from 1 to the limit', async (t) => {
  const someLeft: Expectation = {
    status: 200,
    counter: { limit: 3, remaining: 'some', windowSeconds: 3600 },
  };
  t.same(judge(someLeft, passed), []);
  t.same(judge(someLeft, { ...passed, remaining: '0' }), ['RateLimit-Remaining is 0 instead of 1 to 3']);
});

t.test('a refusal by another rule than expected is a difference', async (t) => {
  const refused: Expectation = { status: 429, limitedBy: 'closed' };
  t.same(judge(refused, { ...withoutHeaders, status: 429, limitedBy: 'closed' }), []);
  t.same(judge(refused, { ...withoutHeaders, status: 429, limitedBy: 'beta' }), [
    'limited by is beta instead of closed',
  ]);
});

t.test('the headers of a refusal tell the rule', async (t) => {
  const headers = new Headers({
    'ratelimit-limit': '3',
    'ratelimit-remaining': '0',
    'ratelimit-reset': '1834',
    'x-limited-by': 'tollgate',
    'x-ratelimit-limit': '3, 3;w=3600;name="per-tenant", 9;w=60;name="other"',
  });
  t.same(toAnswer(429, headers), {
    status: 429,
    limit: '3',
    remaining: '0',
    reset: '1834',
    limitedBy: 'per-tenant',
  });
});

t.test('a refusal by a rule without a name is told from a pass', async (t) => {
  t.equal(toAnswer(429, new Headers({ 'x-limited-by': 'tollgate' })).limitedBy, '?');
  t.equal(toAnswer(200, new Headers({ 'x-ratelimit-limit': '3, 3;name="a"' })).limitedBy, undefined);
});

t.test('an expectation is described in few words', async (t) => {
  t.equal(describe({ status: 200 }), '200, no limit');
  t.equal(describe(passes), '200, 2 of 3 left');
  t.equal(describe({ status: 429, limitedBy: 'closed' }), '429 by closed');
});

t.test('a pass without the headers of the limit has a likely cause', async (t) => {
  t.match(guessCause(passes, withoutHeaders), /without an answer from the rate limit service/);
  t.match(guessCause(passes, { ...withoutHeaders, status: 503 }), /could not reach the application/);
  t.equal(guessCause(passes, { ...passed, remaining: '1' }), undefined);
});
