import type { JsonObject } from './json.ts';
import type { RequestFacts } from './request-facts.ts';

/** What was done, with the kind of thing it was done to. */
const auditActions = {
  login: 'account',
  logout: 'account',
  invite_accepted: 'account',
  user_signedup: 'team',
  user_invited: 'team',
  user_deleted: 'team',
  user_modified: 'user',
  user_recovery_requested: 'user',
  user_reauthenticate_requested: 'user',
  user_confirmation_requested: 'user',
  user_repeated_signup: 'user',
  user_updated_password: 'user',
  token_revoked: 'token',
  token_refreshed: 'token',
  generate_recovery_codes: 'user',
  factor_in_progress: 'factor',
  factor_unenrolled: 'factor',
  challenge_created: 'factor',
  verification_attempted: 'factor',
  factor_deleted: 'factor',
  factor_updated: 'factor',
  mfa_code_login: 'factor',
} as const;

/** One of the keys of {@link auditActions}. */
export type AuditAction = keyof typeof auditActions;

/** An entry of the audit log. */
export interface AuditEntry {
  readonly payload: JsonObject;
  readonly at: Date;
  /** Empty when unknown. */
  readonly ip: string;
}

/** Who did it, as the log names them. */
export interface AuditActor {
  readonly id: string;
  readonly email: string;
  readonly phone: string;
  readonly isSsoUser: boolean;
  readonly userMetadata: JsonObject;
}

/** Makes an entry: who did what, and what there is to say about it. The request is told. */
export function auditEntry(
  actor: AuditActor,
  action: AuditAction,
  options: {
    readonly facts: Pick<RequestFacts, 'nowMs' | 'clientAddress' | 'onAudit'>;
    readonly traits?: JsonObject;
  },
): AuditEntry {
  const { facts, traits } = options;
  const name = actor.userMetadata.full_name;
  const entry: AuditEntry = {
    payload: {
      actor_id: actor.id,
      actor_via_sso: actor.isSsoUser,
      actor_username: actor.email === '' ? actor.phone : actor.email,
      ...(typeof name === 'string' && name !== '' && { actor_name: name }),
      action,
      log_type: auditActions[action],
      ...(traits !== undefined && { traits }),
    },
    at: new Date(facts.nowMs),
    ip: facts.clientAddress,
  };
  facts.onAudit?.(entry);
  return entry;
}
