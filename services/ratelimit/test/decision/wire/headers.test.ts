import t from 'tap';
import { getResponseHeaders } from '../../../src/decision/wire/headers.ts';
import { Code, type DescriptorStatus } from '../../../src/decision/wire/response.ts';

const names = { limit: 'L', remaining: 'R', reset: 'S' };

function status(
  requestsPerUnit: number,
  limitRemaining: number,
  more: { code?: Code; quota?: boolean } = {},
): DescriptorStatus {
  const { code = Code.OK, quota = false } = more;
  return {
    code,
    quota,
    currentLimit: { requestsPerUnit, unit: 'minute', name: '' },
    limitRemaining,
    secondsUntilReset: 40,
  };
}

const uncounted: DescriptorStatus = { code: Code.OK, limitRemaining: 0, quota: false };
const over = { code: Code.OVER_LIMIT } as const;

/** The limit that the headers speak of. */
function chosen(...all: readonly DescriptorStatus[]): string | undefined {
  return getResponseHeaders(all, names)[0]?.value;
}

t.test('limit, remaining and reset, in this order, in decimal digits', async (t) => {
  t.same(getResponseHeaders([status(1_000_000, 999_999)], names), [
    { key: 'L', value: '1000000' },
    { key: 'R', value: '999999' },
    { key: 'S', value: '40' },
  ]);
});

t.test('headers are of the least remaining, the first of equals', async (t) => {
  t.equal(chosen(status(10, 5), status(20, 4), status(30, 6)), '20');
  t.equal(chosen(status(10, 5), status(20, 5)), '10');
  t.equal(chosen(uncounted, status(10, 5)), '10', 'what was not counted has nothing to tell');
});

t.test(
  'a descriptor over its limit takes precedence over one without remaining requests, the last of several',
  async (t) => {
    t.equal(chosen(status(10, 0), status(20, 0, over)), '20');
    t.equal(chosen(status(10, 0, over), status(20, 0)), '10');
    t.equal(chosen(status(10, 0, over), status(20, 0, over)), '20');
  },
);

t.test(
  'a quota over its limit has no precedence: the first descriptor with the least remaining does',
  async (t) => {
    t.equal(chosen(status(10, 0), status(20, 0, { ...over, quota: true })), '10');
    t.equal(chosen(status(10, 1), status(20, 0, { ...over, quota: true })), '20');
  },
);

t.test('without a limit, or with the maximum remaining, there are no headers', async (t) => {
  t.same(getResponseHeaders([], names), []);
  t.same(getResponseHeaders([uncounted], names), []);
  t.same(getResponseHeaders([status(4_294_967_295, 4_294_967_295)], names), []);
});
