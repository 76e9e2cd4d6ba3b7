import type { JsonObject } from '@tollgate/kit/json';
import { type Static, Type } from 'typebox';
import {
  type AddRoutes,
  body,
  bodyLimits,
  optionalObject,
  optionalText,
  uuidParameter,
} from '../http/api.ts';
import {
  addDomain,
  claimDomain,
  type DomainsContext,
  removeDomain,
  toDomainJson,
  verifyDomain,
} from '../organizations/domains.ts';
import { putMember, removeMember, toMemberJson } from '../organizations/members.ts';
import { toOrganizationJson } from '../organizations/organization.ts';
import {
  createOrganization,
  deleteOrganization,
  getOrganization,
  type OrganizationInput,
  type OrganizationsContext,
  updateOrganization,
} from '../organizations/organizations.ts';
import { requireOrganizations } from '../organizations/requests.ts';
import { readDomainRole } from '../organizations/roles.ts';
import type { OrganizationFilter } from '../organizations/store.ts';
import { readAdminRequest } from '../sessions/admin-request.ts';
import { authenticateAdmin } from '../sessions/authenticate.ts';
import { cursorQuery, parameter, parseCursor, readFlag, setPagination, wantsCursor } from './list-pages.ts';

const members = {
  name: optionalText,
  slug: optionalText,
  plan: optionalText,
  limit: Type.Optional(
    Type.Record(Type.String(), Type.Unknown(), {
      description: '`{ requests_per_unit, unit }`, or `{}` for none.',
    }),
  ),
  metadata: optionalObject,
  domain_role: optionalText,
};
const createBody = body({ ...members, owner_id: optionalText });
const changeBody = body(members);
const memberBody = body({ role: optionalText });
const domainBody = body({ domain: optionalText });
const params = Type.Object({ organization_id: Type.String() });
const domainParams = Type.Object({ organization_id: Type.String(), domain: Type.String() });
const memberParams = Type.Object({ organization_id: Type.String(), user_id: Type.String() });

const filterQuery = {
  plan: parameter('The plan.'),
  slug: parameter('The slug.'),
  user_id: parameter('Id of a member.'),
  without_owner: parameter('`true`: organizations without an owner, whose owners were deleted.'),
};
const listQuery = Type.Object({ ...cursorQuery, ...filterQuery });

/** @throws AppError `validation_failed` */
function readFilter(query: Static<typeof listQuery>): OrganizationFilter {
  const { plan = '', slug = '', user_id: userId = '' } = query;
  const withoutOwner = readFlag('without_owner', query.without_owner);
  return {
    ...(plan !== '' && { plan }),
    ...(slug !== '' && { slug }),
    ...(userId !== '' && { userId: uuidParameter({ user_id: userId }, 'user_id') }),
    ...(withoutOwner !== undefined && { withoutOwner }),
  };
}

/** `/admin/organizations` */
export const addAdminOrganizationRoutes: AddRoutes<OrganizationsContext> = (api, context) => {
  const onRequest = requireOrganizations(context);
  const bodyLimit = bodyLimits.contact;
  const path = '/admin/organizations';

  api.get(path, { schema: { querystring: listQuery }, onRequest }, async (request, reply) => {
    await authenticateAdmin(request, context);
    const { limit, after } = parseCursor(request.query);
    const { items, next } = await context.store.organizations.listAfter(readFilter(request.query), {
      limit,
      after,
    });
    const pagination = setPagination(request, reply, { limit, next });
    return reply.send({ organizations: items.map(toOrganizationJson), pagination });
  });

  api.post(path, { schema: { body: createBody }, bodyLimit, onRequest }, async (request, reply) => {
    const change = await readAdminRequest(request, context);
    const { owner_id: owner } = request.body;
    const ownerId = owner === undefined ? undefined : uuidParameter({ owner_id: owner }, 'owner_id');
    const organization = await createOrganization(context, toInput(context, request.body), {
      ...change,
      ownerId,
    });
    return reply.code(201).send(toOrganizationJson(organization));
  });

  const one = `${path}/:organization_id`;
  api.get(one, { schema: { params }, onRequest }, async (request, reply) => {
    await authenticateAdmin(request, context);
    const id = uuidParameter(request.params, 'organization_id');
    return reply.send(toOrganizationJson(await getOrganization(context, id)));
  });

  api.put(one, { schema: { params, body: changeBody }, bodyLimit, onRequest }, async (request, reply) => {
    const change = await readAdminRequest(request, context);
    const id = uuidParameter(request.params, 'organization_id');
    const input = toInput(context, request.body);
    return reply.send(
      toOrganizationJson(await updateOrganization(context, id, { ...change, own: undefined, input })),
    );
  });

  api.delete(one, { schema: { params }, onRequest }, async (request, reply) => {
    const change = await readAdminRequest(request, context);
    await deleteOrganization(context, uuidParameter(request.params, 'organization_id'), {
      ...change,
      own: undefined,
    });
    return reply.code(204).send();
  });
};

/** `/admin/organizations/{organization_id}/domains` */
export const addAdminDomainRoutes: AddRoutes<DomainsContext> = (api, context) => {
  const onRequest = requireOrganizations(context);
  const path = '/admin/organizations/:organization_id/domains';

  api.get(path, { schema: { params }, onRequest }, async (request, reply) => {
    await authenticateAdmin(request, context);
    const { id } = await getOrganization(context, uuidParameter(request.params, 'organization_id'));
    return reply.send({ domains: (await context.store.domains.list(id)).map(toDomainJson) });
  });

  const claim = { schema: { params, body: domainBody }, bodyLimit: bodyLimits.contact, onRequest };
  api.post(path, claim, async (request, reply) => {
    const change = await readAdminRequest(request, context);
    const id = uuidParameter(request.params, 'organization_id');
    const { domain = '' } = request.body;
    const claimed = await claimDomain(context, { ...change, id, domain, own: undefined });
    return reply.code(201).send(toDomainJson(claimed));
  });

  const one = `${path}/:domain`;
  api.post(`${one}/verify`, { schema: { params: domainParams }, onRequest }, async (request, reply) => {
    const change = await readAdminRequest(request, context);
    const id = uuidParameter(request.params, 'organization_id');
    const { domain } = request.params;
    return reply.send(toDomainJson(await verifyDomain(context, { ...change, id, domain, own: undefined })));
  });

  api.put(one, { schema: { params: domainParams }, onRequest }, async (request, reply) => {
    const change = await readAdminRequest(request, context);
    const id = uuidParameter(request.params, 'organization_id');
    return reply.send(
      toDomainJson(await addDomain(context, { ...change, id, domain: request.params.domain })),
    );
  });

  api.delete(one, { schema: { params: domainParams }, onRequest }, async (request, reply) => {
    const change = await readAdminRequest(request, context);
    const id = uuidParameter(request.params, 'organization_id');
    const { domain } = request.params;
    await removeDomain(context, { ...change, id, domain, own: undefined });
    return reply.code(204).send();
  });
};

/** `/admin/organizations/{organization_id}/members` */
export const addAdminMemberRoutes: AddRoutes<OrganizationsContext> = (api, context) => {
  const { store } = context;
  const onRequest = requireOrganizations(context);
  const path = '/admin/organizations/:organization_id/members';

  const querystring = Type.Object(cursorQuery);
  api.get(path, { schema: { params, querystring }, onRequest }, async (request, reply) => {
    await authenticateAdmin(request, context);
    const { id } = await getOrganization(context, uuidParameter(request.params, 'organization_id'));
    if (!wantsCursor(request.query, false))
      return reply.send({ members: (await store.organizations.listMembers(id)).map(toMemberJson) });
    const { limit, after } = parseCursor(request.query);
    const { items, next } = await store.organizations.listMembersAfter(id, { limit, after });
    const pagination = setPagination(request, reply, { limit, next });
    return reply.send({ members: items.map(toMemberJson), pagination });
  });

  const one = `${path}/:user_id`;
  api.put(one, { schema: { params: memberParams, body: memberBody }, onRequest }, async (request, reply) => {
    const change = await readAdminRequest(request, context);
    const organizationId = uuidParameter(request.params, 'organization_id');
    const userId = uuidParameter(request.params, 'user_id');
    const { role } = request.body;
    return reply.send(toMemberJson(await putMember(context, { ...change, organizationId, userId, role })));
  });

  api.delete(one, { schema: { params: memberParams }, onRequest }, async (request, reply) => {
    const change = await readAdminRequest(request, context);
    const organizationId = uuidParameter(request.params, 'organization_id');
    const userId = uuidParameter(request.params, 'user_id');
    await removeMember(context, { ...change, organizationId, userId, own: undefined });
    return reply.code(204).send();
  });
};

function toInput({ settings }: OrganizationsContext, given: Static<typeof changeBody>): OrganizationInput {
  const { name, slug, plan, domain_role: domainRole } = given;
  return {
    ...{ name, slug, plan },
    // Parsed from JSON.
    limit: given.limit as JsonObject | undefined,
    metadata: given.metadata as JsonObject | undefined,
    domainRole: readDomainRole(settings, domainRole),
  };
}
