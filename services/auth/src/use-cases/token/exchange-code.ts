import { isFlowOver } from '../../domain/pkce.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import { isBanned } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import { matchesChallenge } from '../../tokens/matches-challenge.ts';
import { createStartSession, type IssuedSession, type StartSessionDeps } from '../sessions/start-session.ts';

/** A code from a redirect, and the verifier that only the client that began can know. */
export interface CodeExchange {
  readonly authCode?: string | undefined;
  readonly codeVerifier?: string | undefined;
}

/** Exchanges the code of a PKCE flow for a session. */
export type ExchangeCode = (exchange: CodeExchange, facts: RequestFacts) => Promise<IssuedSession>;

/**
 * Creates {@link ExchangeCode}: a code is good for one session, however many ask at once. A wrong verifier spends nothing: who has
 * found a code in a log must not take it from the client.
 */
export function createExchangeCode(deps: StartSessionDeps): ExchangeCode {
  const { store } = deps;
  return async ({ authCode = '', codeVerifier = '' }, facts) => {
    if (authCode === '' || codeVerifier === '')
      throw errors.validation_failed({
        message: 'invalid request: both auth code and code verifier should be non-empty',
      });
    const found = await store.flows.findByCode(authCode);
    if (found === undefined) throw errors.flow_state_not_found();
    const { flow, user } = found;
    if (isFlowOver(flow, facts.nowMs)) throw errors.flow_state_expired();
    if (!matchesChallenge(codeVerifier, flow)) throw errors.bad_code_verifier();
    if (isBanned(user, facts.nowMs)) throw errors.user_banned();
    const signIn = { method: flow.authenticationMethod, traits: { provider_type: 'email' } };
    // All or nothing: a code that is spent has signed somebody in.
    return store.transaction(async (within) => {
      if (!(await within.flows.spend(flow.id))) throw errors.flow_state_not_found();
      return createStartSession({ ...deps, store: within })(user, signIn, facts);
    });
  };
}
