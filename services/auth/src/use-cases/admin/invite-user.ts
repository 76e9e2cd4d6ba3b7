import type { AuditActor } from '../../domain/audit-entry.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import { readEmail } from '../contact/read-contact.ts';
import { createSendLink, type SendLinkDeps } from '../links/send-link.ts';
import { createPrepareUnconfirmed, type UnconfirmedDeps } from './unconfirmed-user.ts';

/** Who is invited, and where to. */
export interface Invitation {
  readonly email: string;
  /** What is said of the user. */
  readonly data: JsonObject;
  readonly aud: string;
  readonly redirectTo: string;
}

/** Invites somebody by mail, also where nobody may sign up by themselves. */
export type InviteUser = (invitation: Invitation, actor: AuditActor, facts: RequestFacts) => Promise<User>;

/** Creates {@link InviteUser}. */
export function createInviteUser(deps: SendLinkDeps & UnconfirmedDeps): InviteUser {
  const { store } = deps;
  const sendLink = createSendLink(deps);
  const prepareUnconfirmed = createPrepareUnconfirmed(deps);
  return async ({ email: givenEmail, data, aud, redirectTo }, actor, facts) => {
    const email = readEmail(givenEmail);
    const known = await store.users.findByEmail(email, aud);
    const user = await prepareUnconfirmed({ email, aud, data, invited: true }, known, { actor, facts });
    // An invitation is often opened in another browser than the one it was asked for in: there is no PKCE.
    await sendLink(user, { kind: 'invite', redirectTo, flow: 'implicit', actor }, facts);
    const invited = await store.users.findById(user.id);
    if (invited === undefined) throw errors.user_not_found();
    return invited;
  };
}
