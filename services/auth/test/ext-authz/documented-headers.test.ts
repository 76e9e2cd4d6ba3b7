import { readFile } from 'node:fs/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import {
  RateLimitResponse_Code,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import t from 'tap';
import {
  denialHeaders,
  forbidden,
  identityHeaderNames,
  identityHeaders,
  noToken,
  unavailable,
} from '../../src/ext-authz/decision.ts';
import { decisionMetadata } from '../../src/ext-authz/grpc.ts';
import type { CallerIdentity } from '../../src/ext-authz/identity.ts';
import { readRateLimitResponse } from '../../src/ext-authz/rate-limit.ts';

const page = new URL('../../../../docs/external-authorization.md', import.meta.url);

const identity: CallerIdentity = {
  userId: '6f0e8a3c-5d0b-4a7e-9a53-000000000001',
  sessionId: '6f0e8a3c-5d0b-4a7e-9a53-000000000002',
  role: 'authenticated',
  plan: 'free',
  aal: 'aal2',
  isAnonymous: false,
  limit: { requestsPerUnit: 5, unit: 'MINUTE' },
};

t.test('the documented table has every header and metadata key, and no others', async (t) => {
  const section = (await readFile(page, 'utf8'))
    .split(/^## /m)
    .find((part) => part.startsWith('Headers and'));
  const rows = [...(section ?? '').matchAll(/^\| (?:`([\w-]+)`)? *\| (?:`(\w+)[^|]*)? *\| (\w*) *\|/gm)];
  const upstream = rows.filter(([, , , to]) => to === 'upstream');
  t.strictSame(
    upstream.map(([, header]) => header),
    identityHeaderNames,
  );
  t.strictSame(Object.keys(identityHeaders(identity, []).set), identityHeaderNames);
  t.strictSame(
    rows.flatMap(([, , key]) => key ?? []),
    Object.keys(
      decisionMetadata({ allowed: true, identity, rateLimit: 'ok', headers: { set: {}, remove: [] } }),
    ),
  );
  const overLimit = create(RateLimitResponseSchema, {
    overallCode: RateLimitResponse_Code.OVER_LIMIT,
    statuses: [{ currentLimit: { requestsPerUnit: 5 }, durationUntilReset: { seconds: 9n } }],
  });
  const limited = readRateLimitResponse(toBinary(RateLimitResponseSchema, overLimit));
  const denials = [noToken(), forbidden('role_not_allowed'), unavailable()].map(denialHeaders);
  t.strictSame(
    new Set(rows.filter(([, , , to]) => to === 'client').map(([, header]) => header)),
    new Set([...denials, limited.headers].flatMap((headers) => Object.keys(headers))),
  );
});
