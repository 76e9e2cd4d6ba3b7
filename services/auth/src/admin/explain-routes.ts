import { type Static, Type } from 'typebox';
import { errors } from '../errors.ts';
import type { CheckExplainer } from '../ext-authz/explain.ts';
import { type AddRoutes, body, bodyLimits, optionalText } from '../http/api.ts';
import { checkScopes } from '../sessions/admin-request.ts';
import { authenticateAdmin } from '../sessions/authenticate.ts';
import type { AdminContext } from './users.ts';

/** Set by external authorization when the service is composed. */
export interface ExplainParts {
  readonly explain: { readonly current: Pick<CheckExplainer, 'explain'> | undefined };
}

const explainBody = body({
  method: Type.String(),
  url: Type.String(),
  headers: Type.Optional(Type.Record(Type.String(), Type.String())),
  credential: Type.Optional(Type.String({ description: 'An access token or an API key.' })),
  as: Type.Optional(Type.String({ description: '`user:<id>`, `key:<id>` or `client:<id>`.' })),
  aal: optionalText,
  scope: optionalText,
  audience: optionalText,
  org: optionalText,
  address: Type.Optional(Type.String({ description: 'IP address of the client.' })),
  policy: Type.Optional(Type.String({ description: '`namespace/name` of the policy to apply.' })),
  route: Type.Optional(
    Type.Object(
      { kind: Type.String(), namespace: Type.String(), name: Type.String(), section_name: optionalText },
      { description: 'The route that the gateway would say.' },
    ),
  ),
});

/** The answer has the attributes of the caller, which an API key may read with these scopes. */
function scopesOfCaller({ credential = '', as = '' }: Static<typeof explainBody>): readonly string[] {
  if (credential !== '') return ['keys:verify'];
  const scope = scopesByKind[as.split(':', 1)[0] ?? ''];
  return scope === undefined ? [] : [scope];
}

const scopesByKind: Readonly<Record<string, string>> = {
  user: 'users:read',
  key: 'keys:write',
  client: 'clients:write',
};

/** `/admin/policies/explain` */
export const addExplainRoutes: AddRoutes<AdminContext & ExplainParts> = (api, context) => {
  const options = { schema: { body: explainBody }, bodyLimit: bodyLimits.contact };
  api.post('/admin/policies/explain', options, async (request, reply) => {
    const administrator = await authenticateAdmin(request, context);
    checkScopes(administrator, scopesOfCaller(request.body));
    const explainer = context.explain.current;
    if (explainer === undefined) throw errors.feature_disabled();
    const { route, ...input } = request.body;
    const { section_name: sectionName = '', ...known } = route ?? { kind: '', namespace: '', name: '' };
    return reply.send(
      await explainer.explain({ ...input, ...(route && { route: { ...known, sectionName } }) }),
    );
  });
};
