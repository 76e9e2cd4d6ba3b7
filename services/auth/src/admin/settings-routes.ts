import { findNextStep, longestTokenSeconds } from '@tollgate/kit/signing-keys';
import type { StartReport } from '@tollgate/kit/start-report';
import type { AddRoutes } from '../http/api.ts';
import type { SigningKeySource } from '../keys/key-source.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import { authenticateAdmin } from '../sessions/authenticate.ts';
import type { AdminContext } from './users.ts';

/** The configuration, for operators. */
export interface SettingsParts {
  readonly report: Pick<StartReport, 'get'>;
  readonly signingKeys: Pick<SigningKeySource, 'describe'>;
}

type SettingsContext = AdminContext & SettingsParts & { readonly keys: SigningKeys };

/** `/admin/settings` and `/admin/signing-keys` */
export const addSettingsRoutes: AddRoutes<SettingsContext> = (api, context) => {
  api.get('/admin/settings', async (request, reply) => {
    await authenticateAdmin(request, context);
    return reply.send(context.report.get());
  });
  api.get('/admin/signing-keys', async (request, reply) => {
    await authenticateAdmin(request, context);
    return reply.send(describeKeys(context));
  });
};

function describeKeys({ signingKeys, keys: { verifiedMs }, settings }: SettingsContext) {
  const { variable, file, keys } = signingKeys.describe();
  const lifetime = longestTokenSeconds(settings);
  const { step, from, why } = findNextStep(keys, lifetime);
  return {
    variable,
    ...(file !== undefined && { file }),
    token_lifetime: lifetime,
    keys: keys.map((key) => {
      const usedMs = verifiedMs.get(key.kid);
      return {
        ...{ kid: key.kid, algorithm: key.algorithm, state: key.state, in_jwks: key.isPublished },
        ...times({ added_at: key.addedAt, signs_since: key.signsAt, replaced_at: key.replacedAt }),
        ...times({ last_verified_at: usedMs === undefined ? undefined : usedMs / 1000 }),
      };
    }),
    next: { step, reason: why, ...times({ not_before: from }) },
  };
}

/** Unix times in seconds as RFC 3339. Unknown times are left out. */
function times(all: Readonly<Record<string, number | undefined>>): Readonly<Record<string, string>> {
  const known = Object.entries(all).filter((entry): entry is [string, number] => entry[1] !== undefined);
  return Object.fromEntries(known.map(([name, seconds]) => [name, new Date(seconds * 1000).toISOString()]));
}
