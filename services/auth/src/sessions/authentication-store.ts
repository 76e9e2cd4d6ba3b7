import type { Queryable } from '../db/connection.ts';
import { type RowOf, text, timestamptz, uuid } from '../db/sql-types.ts';
import { parameters, statement } from '../db/statement.ts';
import type { AssuranceLevel } from './store.ts';

/** How a user has authenticated, in our tables. */
export const authenticationRow = {
  authenticated_at: timestamptz,
  aal: text.as<AssuranceLevel>(),
  /** Values of the claim `amr` of access tokens. */
  methods: text.list,
};

export type Authentication = RowOf<typeof authenticationRow>;

const p = {
  ...parameters(uuid, 'id', 'earlierId'),
  ...parameters(text, 'aal'),
  ...parameters(text.list, 'methods'),
  ...parameters(timestamptz, 'authenticatedAt', 'at'),
};

const note = statement({})`
  insert into oidc_authorizations (request_id, authenticated_at, aal, methods, stored_at)
  values (${p.id}, ${p.authenticatedAt}, ${p.aal}, ${p.methods}, ${p.at})`;

const keep = statement({})`
  insert into session_authentications (session_id, authenticated_at, aal, methods, approved_by)
  select request_id, authenticated_at, aal, methods, approved_by from oidc_authorizations
  where request_id = ${p.id} and authenticated_at is not null`;

const move = statement({})`
  update session_authentications set approved_by = ${p.id} where approved_by = ${p.earlierId}`;

const find = statement(authenticationRow)`
  select authenticated_at, aal, methods from session_authentications where session_id = ${p.id}`;

/**
 * How the users of sessions had authenticated before these started: at the authorization of an
 * OAuth client, or at an external provider.
 */
export class AuthenticationStore {
  readonly #sql: Queryable;

  constructor(sql: Queryable) {
    this.#sql = sql;
  }

  /** Notes the authentication for the session that will have this id. */
  async note(id: string, authentication: Authentication, at: Date): Promise<void> {
    const { authenticated_at: authenticatedAt, aal, methods } = authentication;
    await note.run(this.#sql, { id, authenticatedAt, aal, methods, at });
  }

  /** Keeps the authentication that was noted for a session, now that it has started. */
  async keep(id: string): Promise<void> {
    await keep.run(this.#sql, { id });
  }

  /** Lets a session take over the clients that the user has signed in to with an earlier one. */
  async move(earlierId: string, id: string): Promise<void> {
    await move.run(this.#sql, { earlierId, id });
  }

  /** Undefined: the session began with the authentication. */
  async find(sessionId: string): Promise<Authentication | undefined> {
    return find.first(this.#sql, { id: sessionId });
  }
}
