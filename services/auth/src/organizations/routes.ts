import { Type } from 'typebox';
import { errors } from '../errors.ts';
import { type AddRoutes, body, optionalText, uuidParameter } from '../http/api.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { authenticatePermanentUser } from '../sessions/authenticate.ts';
import { switchByToken } from './active.ts';
import { type DomainsContext, joinByDomain, listJoinable } from './domains.ts';
import { changeRole, removeMember, toMemberJson } from './members.ts';
import { toMembershipJson } from './organization.ts';
import {
  createOrganization,
  deleteOrganization,
  type OrganizationsContext,
  updateOrganization,
} from './organizations.ts';
import { readMemberRequest, requireOrganizations } from './requests.ts';
import { readDomainRole } from './roles.ts';

const organizationBody = body({ name: optionalText, slug: optionalText });
const changeBody = body({ name: optionalText, slug: optionalText, domain_role: optionalText });
const activeBody = body({ id: Type.Optional(Type.Union([Type.String(), Type.Null()])) });
const memberBody = body({ role: optionalText });
const params = Type.Object({ organization_id: Type.String() });
const memberParams = Type.Object({ organization_id: Type.String(), user_id: Type.String() });

/** `/organizations` and `/user/organization` */
export const addOrganizationRoutes: AddRoutes<DomainsContext> = (api, context) => {
  const { store, settings } = context;
  const onRequest = requireOrganizations(context);

  api.get('/organizations', { onRequest }, async (request, reply) => {
    const { user } = await authenticatePermanentUser(request, context);
    const memberships = await store.organizations.listMemberships(user.id);
    const joinable = await listJoinable(context, user);
    return reply.send({
      organizations: memberships.map(toMembershipJson),
      joinable: joinable.map(({ id, name, slug }) => ({ id, name, slug })),
    });
  });

  api.post('/organizations', { schema: { body: organizationBody }, onRequest }, async (request, reply) => {
    const { user } = await authenticatePermanentUser(request, context);
    if (settings.organizationsCreate === 'admin')
      throw errors.organization_permission_denied({ message: 'Only administrators create organizations' });
    const { name, slug } = request.body;
    const input = { name, slug };
    const organization = await createOrganization(context, input, {
      actor: user,
      metadata: requestMetadata(request, context),
      ownerId: user.id,
      maxPerUser: settings.organizationsMaxPerUser,
    });
    return reply.code(201).send(toMembershipJson({ organization, role: 'owner' }));
  });

  const path = '/organizations/:organization_id';
  api.get(path, { schema: { params }, onRequest }, async (request, reply) =>
    reply.send(toMembershipJson(await readMemberRequest(request, context, 'organization:read'))),
  );

  api.patch(path, { schema: { params, body: changeBody }, onRequest }, async (request, reply) => {
    const member = await readMemberRequest(request, context, 'organization:update');
    const { name, slug, domain_role: role } = request.body;
    const input = { name, slug, domainRole: readDomainRole(settings, role) };
    const change = { ...member, own: member.role, input };
    const organization = await updateOrganization(context, member.organization.id, change);
    return reply.send(toMembershipJson({ ...member, organization }));
  });

  api.delete(path, { schema: { params }, onRequest }, async (request, reply) => {
    const member = await readMemberRequest(request, context, 'organization:delete');
    await deleteOrganization(context, member.organization.id, { ...member, own: member.role });
    return reply.code(204).send();
  });

  api.post(`${path}/join`, { schema: { params }, onRequest }, async (request, reply) => {
    const { user } = await authenticatePermanentUser(request, context);
    const id = uuidParameter(request.params, 'organization_id');
    const metadata = requestMetadata(request, context);
    return reply.send(toMembershipJson(await joinByDomain(context, { id, user, actor: user, metadata })));
  });

  api.post('/user/organization', { schema: { body: activeBody }, onRequest }, async (request, reply) => {
    const caller = await authenticatePermanentUser(request, context);
    const { id = null } = request.body;
    const organizationId = id === null ? null : uuidParameter({ id }, 'id');
    const metadata = requestMetadata(request, context);
    const active = await switchByToken(context, { ...caller, organizationId }, metadata);
    return reply.header('cache-control', 'no-store').send({
      access_token: active.accessToken,
      token_type: 'bearer',
      expires_in: active.expiresInSeconds,
      expires_at: active.expiresAt,
      ...(active.organization && { organization: { ...active.organization } }),
    });
  });
};

/** `/organizations/{organization_id}/members` */
export const addMemberRoutes: AddRoutes<OrganizationsContext> = (api, context) => {
  const { store } = context;
  const onRequest = requireOrganizations(context);
  const path = '/organizations/:organization_id/members';

  api.get(path, { schema: { params }, onRequest }, async (request, reply) => {
    const { organization } = await readMemberRequest(request, context, 'members:read');
    const members = await store.organizations.listMembers(organization.id);
    return reply.send({ members: members.map(toMemberJson) });
  });

  const one = `${path}/:user_id`;
  api.patch(
    one,
    { schema: { params: memberParams, body: memberBody }, onRequest },
    async (request, reply) => {
      const {
        organization,
        role: own,
        ...change
      } = await readMemberRequest(request, context, 'members:write');
      const userId = uuidParameter(request.params, 'user_id');
      const { role } = request.body;
      const member = await changeRole(context, {
        organizationId: organization.id,
        userId,
        own,
        role,
        ...change,
      });
      return reply.send(toMemberJson(member));
    },
  );

  api.delete(one, { schema: { params: memberParams }, onRequest }, async (request, reply) => {
    const userId = uuidParameter(request.params, 'user_id');
    const caller = await readMemberRequest(request, context, 'organization:read');
    const {
      organization,
      role: own,
      ...change
    } = userId === caller.user.id ? caller : await readMemberRequest(request, context, 'members:write');
    await removeMember(context, { organizationId: organization.id, userId, own, ...change });
    return reply.code(204).send();
  });
};
