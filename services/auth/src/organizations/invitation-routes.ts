import { Type } from 'typebox';
import { errors } from '../errors.ts';
import { type AddRoutes, body, optionalText, uuidParameter } from '../http/api.ts';
import { redirectTarget } from '../http/redirects.ts';
import { requestMetadata } from '../http/request-metadata.ts';
import { authenticatePermanentUser } from '../sessions/authenticate.ts';
import {
  acceptInvitation,
  type InvitationsContext,
  invite,
  revokeInvitation,
  toInvitationJson,
} from './invitations.ts';
import { toMembershipJson } from './organization.ts';
import { readMemberRequest, requireOrganizations } from './requests.ts';

const inviteBody = body({ email: optionalText, role: optionalText, redirect_to: optionalText });
const joinBody = body({ token: optionalText });
const params = Type.Object({ organization_id: Type.String() });
const invitationParams = Type.Object({ organization_id: Type.String(), invitation_id: Type.String() });

/** `/organizations/{organization_id}/invitations` and `/organizations/join` */
export const addInvitationRoutes: AddRoutes<InvitationsContext> = (api, context) => {
  const { store, nowMs } = context;
  const onRequest = requireOrganizations(context);
  const path = '/organizations/:organization_id/invitations';

  api.get(path, { schema: { params }, onRequest }, async (request, reply) => {
    const { organization } = await readMemberRequest(request, context, 'members:invite');
    const invitations = await store.invitations.list(organization.id, new Date(nowMs()));
    return reply.send({ invitations: invitations.map(toInvitationJson) });
  });

  api.post(path, { schema: { params, body: inviteBody }, onRequest }, async (request, reply) => {
    const { role: own, ...member } = await readMemberRequest(request, context, 'members:invite');
    const { email, role } = request.body;
    const redirectTo = redirectTarget(request, request.body, context);
    const invitation = await invite(context, { ...member, own, email, role, redirectTo });
    return reply.code(201).send(toInvitationJson(invitation));
  });

  const one = `${path}/:invitation_id`;
  api.delete(one, { schema: { params: invitationParams }, onRequest }, async (request, reply) => {
    const member = await readMemberRequest(request, context, 'members:invite');
    const id = uuidParameter(request.params, 'invitation_id');
    await revokeInvitation(context, { ...member, id });
    return reply.code(204).send();
  });

  api.post('/organizations/join', { schema: { body: joinBody }, onRequest }, async (request, reply) => {
    const { user } = await authenticatePermanentUser(request, context);
    const { token } = request.body;
    if (token === undefined) throw errors.validation_failed({ message: 'token is required' });
    const metadata = requestMetadata(request, context);
    const membership = await acceptInvitation(context, { user, token, actor: user, metadata });
    return reply.send(toMembershipJson(membership));
  });
};
