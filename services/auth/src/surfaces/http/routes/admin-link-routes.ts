import type { JsonObject } from '../../../domain/json.ts';
import { toUserJson } from '../../../domain/user-json.ts';
import { createGenerateLink } from '../../../use-cases/admin/generate-link.ts';
import { createInviteUser } from '../../../use-cases/admin/invite-user.ts';
import type { AddRoutes } from '../api.ts';
import { authenticateAdmin } from '../authenticate.ts';
import { bodyLimits } from '../body-limits.ts';
import { redirectTarget } from '../redirect-target.ts';
import { requestedAudience, requestFacts } from '../request-facts.ts';
import { body, optionalObject, optionalText } from '../schemas.ts';

const inviteBody = body({ email: optionalText, data: optionalObject, redirect_to: optionalText });
const linkBody = body({
  type: optionalText,
  email: optionalText,
  new_email: optionalText,
  password: optionalText,
  data: optionalObject,
  redirect_to: optionalText,
});

/** `/invite` and `/admin/generate_link`: links that administrators have sent, or hand over themselves. */
export const addAdminLinkRoutes: AddRoutes = (api, deps) => {
  const inviteUser = createInviteUser(deps);
  const generateLink = createGenerateLink(deps);

  api.post(
    '/invite',
    { schema: { body: inviteBody }, bodyLimit: bodyLimits.admin },
    async (request, reply) => {
      const { actor } = await authenticateAdmin(request, deps);
      const { email = '', data = {} } = request.body;
      const invitation = {
        email,
        data: data as JsonObject, // it came as JSON
        aud: requestedAudience(request, deps),
        redirectTo: redirectTarget(request, request.body, deps),
      };
      return reply.send(toUserJson(await inviteUser(invitation, actor, requestFacts(request, deps))));
    },
  );

  api.post(
    '/admin/generate_link',
    { schema: { body: linkBody }, bodyLimit: bodyLimits.admin },
    async (request, reply) => {
      const { actor } = await authenticateAdmin(request, deps);
      const { type = '', email = '', new_email: newEmail = '', password = '', data = {} } = request.body;
      const wanted = {
        type,
        email,
        newEmail,
        password,
        data: data as JsonObject, // it came as JSON
        aud: requestedAudience(request, deps),
        redirectTo: redirectTarget(request, request.body, deps),
      };
      const { user, link } = await generateLink(wanted, actor, requestFacts(request, deps));
      return reply.send({
        ...toUserJson(user),
        action_link: link.actionLink,
        email_otp: link.emailOtp,
        hashed_token: link.hashedToken,
        verification_type: link.verificationType,
        redirect_to: link.redirectTo,
      });
    },
  );
};
