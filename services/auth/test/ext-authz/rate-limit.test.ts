import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import type { LimitedRequest } from '@tollgate/policies/decide/descriptors';
import { limitAttributes, toLimit } from '@tollgate/policies/routes-file/route-rules';
import {
  RateLimitResponse_Code as Code,
  RateLimitRequestSchema,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import t from 'tap';
import { ClientAddresses } from '../../src/ext-authz/client-address.ts';
import { addHeader } from '../../src/ext-authz/codec.ts';
import { readRateLimitResponse, writeRateLimitRequest } from '../../src/ext-authz/rate-limit.ts';
import { joinResults } from '../../src/ext-authz/rate-limiter.ts';
import type { RateLimitResult } from '../../src/ext-authz/result.ts';
import { callerIdentity } from '../helpers/caller.ts';

const identity = callerIdentity({ userId: 'u', sessionId: 's', role: 'staff', plan: 'pro', aal: 'aal2' });
const request: LimitedRequest = {
  identity,
  method: 'GET',
  rulePath: '/orders/*',
  remoteAddress: '192.0.2.1',
  headers: {},
};

/** Each descriptor as `key=value,… limit`. */
function descriptors(
  limit: readonly (readonly string[])[],
  of: Partial<LimitedRequest> = {},
): string[] | undefined {
  const bytes = writeRateLimitRequest('shop', limit.map(toLimit), { ...request, ...of });
  if (bytes === undefined) return undefined;
  return fromBinary(RateLimitRequestSchema, bytes).descriptors.map(({ entries, limit: override }) =>
    [
      entries.map(({ key, value }) => `${key}=${value}`).join(),
      ...(override ? [`${override.requestsPerUnit}/${override.unit}`] : []),
    ].join(' '),
  );
}

t.test('a limit of a policy counts by an attribute of the routes file', (t) => {
  const of = (claims: Record<string, string>) => ({ identity: { ...identity, claims } });
  t.same(descriptors([['claim_department']], of({ department: 'books' })), ['claim_department=books']);
  t.equal(descriptors([['claim_department']], of({})), undefined, 'callers without it are not counted');
  t.equal(descriptors([['claim_constructor']]), undefined);
  t.end();
});

t.test('a limit on trial is not sent for callers with an own limit, which would be enforced', (t) => {
  const limit = { name: 'soon', plans: undefined, keys: ['user_id'], mode: 'Trial' } as const;
  const own = { ...identity, limit: { requestsPerUnit: 9, unit: 'HOUR' } as const };
  t.ok(writeRateLimitRequest('shop', [limit], request));
  t.equal(writeRateLimitRequest('shop', [limit], { ...request, identity: own }), undefined);
  t.ok(writeRateLimitRequest('shop', [{ ...limit, mode: 'Shadow' }], { ...request, identity: own }));
  t.end();
});

t.test('of several domains, a denial decides, whatever the headers of the answers are', (t) => {
  const ok = (headers = {}): RateLimitResult => ({ code: 'ok', headers });
  const over = (headers = {}): RateLimitResult => ({ code: 'over_limit', headers });
  const failed: RateLimitResult = { code: 'error', allowed: true };
  const others = [
    failed,
    ok(),
    ok({ 'ratelimit-remaining': '"user";r=5' }),
    ok({ 'ratelimit-remaining': '-9' }),
  ];
  const waits = ['0', '-9', '30', 'Fri, 27 Nov 2026 06:00:00 GMT'];
  const denials = [over(), ...waits.map((wait) => over({ 'retry-after': wait }))];
  for (const other of others)
    for (const denial of denials) {
      t.equal(joinResults([other, denial]), denial);
      t.equal(joinResults([denial, other]), denial);
    }
  t.equal(joinResults([ok({ 'ratelimit-remaining': '0' }), failed]), failed);
  t.end();
});

t.test('a descriptor has the attributes in the order of the file', (t) => {
  const ids = {
    key: { id: 'k', limit: undefined },
    clientId: 'c',
    orgId: 'o',
    orgRole: 'owner',
    scope: 'a b',
    claims: { department: 'books' },
  };
  const full = { identity: { ...identity, ...ids } };
  t.same(
    descriptors(
      [
        [...limitAttributes, 'department'],
        ['plan', 'user_id'],
      ],
      full,
    ),
    [
      'user_id=u,session_id=s,key_id=k,role=staff,plan=pro,aal=aal2,anonymous=false,kind=user,client_id=c,org_id=o,' +
        'org_role=owner,scope=a b,issuer=tollgate,remote_address=192.0.2.1,path=/orders/*,method=GET,department=books',
      'plan=pro,user_id=u',
    ],
  );
  t.same(
    descriptors([['path', 'method']], { method: 'XYZ1', rulePath: undefined }),
    ['path=default,method=other'],
    'neither the raw path nor an invented method gets another counter',
  );
  t.end();
});

t.test('descriptors without a value are dropped', (t) => {
  const open = { identity: undefined };
  t.same(descriptors([['user_id'], ['path', 'plan'], ['remote_address']], open), [
    'remote_address=192.0.2.1',
  ]);
  t.equal(descriptors([['user_id'], ['anonymous']], open), undefined);
  const service = { ...identity, userId: undefined, sessionId: undefined };
  t.same(descriptors([['user_id'], ['plan']], { identity: service }), ['plan=pro']);
  t.end();
});

t.test('a header with the name of a property of all objects has a value only when it was sent', (t) => {
  const limit = { name: 'l', plans: undefined, keys: ['header_constructor'] };
  t.equal(writeRateLimitRequest('shop', [limit], request), undefined);
  const headers: Record<string, string> = {};
  addHeader(headers, 'constructor', 'a');
  addHeader(headers, 'constructor', 'b');
  t.same(headers, { constructor: 'a,b' });
  t.not(writeRateLimitRequest('shop', [limit], { ...request, headers }), undefined);
  t.end();
});

t.test('the limit of a user replaces the limits of all requests of the user', (t) => {
  const own = { identity: { ...identity, limit: { requestsPerUnit: 7, unit: 'WEEK' } as const } };
  const limit = [['user_id'], ['plan', 'user_id'], ['path', 'user_id'], ['plan']];
  t.same(descriptors(limit, own), [
    ...['user_id=u 7/7', 'plan=pro,user_id=u 7/7'],
    ...['path=/orders/*,user_id=u', 'plan=pro'],
  ]);
  t.end();
});

t.test('the limit of a client replaces the limits of all requests of the client', (t) => {
  const limited = { limit: { requestsPerUnit: 7, unit: 'WEEK' } as const };
  const client = { ...identity, kind: 'client' as const, userId: undefined, clientId: 'c', ...limited };
  const limit = [['plan', 'client_id'], ['issuer', 'client_id'], ['path', 'client_id'], ['user_id']];
  t.same(descriptors(limit, { identity: client }), [
    ...['plan=pro,client_id=c 7/7', 'issuer=tollgate,client_id=c 7/7', 'path=/orders/*,client_id=c'],
  ]);
  t.end();
});

t.test('unusual values are sent as they are', (t) => {
  const plans = ['é', '日本', 'p'.repeat(255), 'a,b=c'];
  for (const plan of plans) {
    const other = { identity: { ...identity, plan } };
    t.same(descriptors([['plan'], ['user_id']], other), [`plan=${plan}`, 'user_id=u']);
  }
  const many = Array.from({ length: 10 }, () => ['path', 'plan', 'user_id']);
  const long = { rulePath: `/${'x'.repeat(500)}`, identity: { ...identity, plan: 'p'.repeat(255) } };
  t.equal(descriptors(many, long)?.length, 10, 'larger than usual');
  t.end();
});

function read(response: MessageInitShape<typeof RateLimitResponseSchema>) {
  return readRateLimitResponse(toBinary(RateLimitResponseSchema, create(RateLimitResponseSchema, response)));
}

const status = (code: Code, requestsPerUnit: number, limitRemaining: number, seconds: number) => ({
  ...{ code, limitRemaining, currentLimit: { requestsPerUnit } },
  durationUntilReset: { seconds: BigInt(seconds) },
});

t.test('without headers of the service, they are computed from the limit with the least remaining', (t) => {
  const statuses = [status(Code.OK, 100, 40, 3600), { code: Code.OK }, status(Code.OK, 10, 9, 60)];
  t.same(read({ overallCode: Code.OK, statuses }), {
    code: 'ok',
    headers: { 'ratelimit-limit': '10', 'ratelimit-remaining': '9', 'ratelimit-reset': '60' },
  });
  const exceeded = [...statuses, status(Code.OVER_LIMIT, 50, 0, 7), status(Code.OVER_LIMIT, 60, 0, 9)];
  t.same(read({ overallCode: Code.OVER_LIMIT, statuses: exceeded }), {
    code: 'over_limit',
    headers: {
      ...{ 'ratelimit-limit': '50', 'ratelimit-remaining': '0', 'ratelimit-reset': '7' },
      'retry-after': '9',
    },
  });
  t.same(read({ overallCode: Code.OK }), { code: 'ok', headers: {} }, 'no rule matched');
  t.match(read({ overallCode: Code.OVER_LIMIT }), { headers: { 'retry-after': '1' } });
  t.throws(() => read({}), /without a code/);
  t.throws(() => readRateLimitResponse(Uint8Array.of(0xff)));
  t.end();
});

t.test('headers of the service are passed on, except invalid ones', (t) => {
  const headers = [
    ...[
      { key: 'RateLimit', value: '"user";r=0;t=5' },
      { key: 'Retry-After', value: '5' },
    ],
    ...[
      { key: 'a b', value: '1' },
      { key: 'x', value: 'a\r\nset-cookie: b' },
    ],
  ];
  t.same(read({ overallCode: Code.OVER_LIMIT, responseHeadersToAdd: headers }), {
    code: 'over_limit',
    headers: { ratelimit: '"user";r=0;t=5', 'retry-after': '5' },
  });
  t.end();
});

t.test('the address of a client is the first that is not a trusted proxy', (t) => {
  const addresses = new ClientAddresses(['uniquelocal', '198.51.100.7', '2001:db8:f::/48']);
  const find = (sourceAddress: string, ...forwardedFor: string[]) =>
    addresses.find({ sourceAddress, forwardedFor });
  t.equal(find('192.0.2.1', '10.0.0.1, 1.2.3.4'), '192.0.2.1', 'an untrusted sender of the header');
  t.equal(find('10.1.2.3', '1.1.1.1, 192.0.2.1, 198.51.100.7', '10.1.2.3'), '192.0.2.1');
  t.equal(find('10.1.2.3', '1.1.1.1, forged, 10.9.9.9'), '10.9.9.9', 'up to what is no address');
  t.equal(find('10.1.2.3'), '10.1.2.3', 'without the header');
  t.equal(find('', '1.1.1.1, 192.0.2.1'), '192.0.2.1', 'over HTTP the gateway is trusted');
  t.equal(find('', `${'1.1.1.1,'.repeat(9_000)} 10.0.0.1`), '1.1.1.1');
  for (const missing of ['', 'none']) t.equal(find(missing), 'unknown');
  t.equal(find('::ffff:192.0.2.1'), '192.0.2.1');
  t.equal(find('2001:db8:f::1', '2001:db8:1:2:3:4:5:6'), '2001:db8:1:2::/64');
  t.end();
});

t.test('a private proxy that is not trusted hides its clients', (t) => {
  const hides = (sourceAddress: string, ...forwardedFor: string[]) =>
    new ClientAddresses(['10.0.0.0/8']).isHidden({ sourceAddress, forwardedFor });
  t.equal(hides('192.168.0.1', '203.0.113.9, 192.168.0.1'), true);
  t.equal(hides('192.168.0.1', '192.168.0.1'), false, 'Envoy appends the client itself');
  t.equal(hides('192.168.0.1'), false);
  t.equal(hides('10.0.0.1', '203.0.113.9'), false);
  t.equal(hides('8.8.8.8', '203.0.113.9'), false, 'a client may send the header');
  t.end();
});
