import { readFile } from 'node:fs/promises';
import { create, toBinary } from '@bufbuild/protobuf';
import { type CallerIdentity, callerAttributeNames } from '@tollgate/policies/decide/caller';
import {
  RateLimitResponse_Code,
  RateLimitResponseSchema,
} from '@tollgate/proto/envoy/service/ratelimit/v3/rls';
import t from 'tap';
import { denialHeaders, forbidden, noToken, unavailable } from '../../src/ext-authz/denials.ts';
import { decisionMetadata } from '../../src/ext-authz/grpc.ts';
import { identityHeaderNames, identityHeaders } from '../../src/ext-authz/identity-headers.ts';
import { readRateLimitResponse } from '../../src/ext-authz/rate-limit.ts';
import { callerIdentity } from '../helpers/caller.ts';

const page = new URL('../../../../docs/external-authorization.md', import.meta.url);

t.test('the documented table has every other header and metadata key, and no others', async (t) => {
  const section = (await readFile(page, 'utf8'))
    .split(/^## /m)
    .find((part) => part.startsWith('Headers and'));
  const rows = [...(section ?? '').matchAll(/^\| (?:`([\w-]+)`)? *\| (?:`(\w+)[^|]*)? *\| (\w*) *\|/gm)];
  const limited = callerIdentity({ limit: { requestsPerUnit: 5, unit: 'MINUTE' } });
  t.strictSame(
    rows.flatMap(([, , key]) => key ?? []),
    Object.keys(decisionMetadata({ ...allowedAs(limited), rateLimit: 'ok' })).filter(
      (name) => !callerAttributeNames.includes(name),
    ),
  );
  const overLimit = create(RateLimitResponseSchema, {
    overallCode: RateLimitResponse_Code.OVER_LIMIT,
    statuses: [{ currentLimit: { requestsPerUnit: 5 }, durationUntilReset: { seconds: 9n } }],
  });
  const { headers } = readRateLimitResponse(toBinary(RateLimitResponseSchema, overLimit));
  const denials = [noToken(), forbidden('role_not_allowed'), unavailable()].map(denialHeaders);
  t.strictSame(
    new Set(rows.filter(([, , , to]) => to === 'client').map(([, header]) => header)),
    new Set([...denials, headers].flatMap((names) => Object.keys(names))),
  );
});

t.test('an attribute of the table is a header and metadata, unless the caller lacks it', async (t) => {
  const full = callerIdentity({
    key: { id: 'k', limit: undefined },
    clientId: 'c',
    orgId: 'o',
    orgRole: 'owner',
    scope: 'read',
  });
  t.strictSame(Object.keys(identityHeaders(full, []).set), identityHeaderNames);
  t.strictSame(Object.keys(decisionMetadata(allowedAs(full))), callerAttributeNames);
  t.strictSame(identityHeaders(undefined, []), { set: {}, remove: [...identityHeaderNames] });
});

function allowedAs(identity: CallerIdentity) {
  return { allowed: true, identity, headers: { set: {}, remove: [] } } as const;
}
