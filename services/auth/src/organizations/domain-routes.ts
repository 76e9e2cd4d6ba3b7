import { Type } from 'typebox';
import { type AddRoutes, body, bodyLimits, optionalText } from '../http/api.ts';
import { claimDomain, type DomainsContext, removeDomain, toDomainJson, verifyDomain } from './domains.ts';
import { readMemberRequest, requireOrganizations } from './requests.ts';

const domainBody = body({ domain: optionalText });
const params = Type.Object({ organization_id: Type.String() });
const domainParams = Type.Object({ organization_id: Type.String(), domain: Type.String() });

/** `/organizations/{organization_id}/domains` */
export const addOrganizationDomainRoutes: AddRoutes<DomainsContext> = (api, context) => {
  const onRequest = requireOrganizations(context);
  const path = '/organizations/:organization_id/domains';
  const one = `${path}/:domain`;

  const readRequest = async (request: Parameters<typeof readMemberRequest>[0]) => {
    const { organization, role, ...change } = await readMemberRequest(request, context, 'domains:write');
    return { id: organization.id, own: role, ...change };
  };

  api.get(path, { schema: { params }, onRequest }, async (request, reply) => {
    const { id } = await readRequest(request);
    return reply.send({ domains: (await context.store.domains.list(id)).map(toDomainJson) });
  });

  const addition = { schema: { params, body: domainBody }, bodyLimit: bodyLimits.contact, onRequest };
  api.post(path, addition, async (request, reply) => {
    const change = await readRequest(request);
    const { domain = '' } = request.body;
    return reply.code(201).send(toDomainJson(await claimDomain(context, { ...change, domain })));
  });

  api.post(`${one}/verify`, { schema: { params: domainParams }, onRequest }, async (request, reply) => {
    const { domain } = request.params;
    const change = await readRequest(request);
    return reply.send(toDomainJson(await verifyDomain(context, { ...change, domain })));
  });

  api.delete(one, { schema: { params: domainParams }, onRequest }, async (request, reply) => {
    const { domain } = request.params;
    await removeDomain(context, { ...(await readRequest(request)), domain });
    return reply.code(204).send();
  });
};
