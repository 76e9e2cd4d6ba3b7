import { errors } from '../errors.ts';
import { ServiceError, type SessionClients } from './session-clients.ts';

/** Code of the auth server for a person without a role of administrators. */
const notAdministrator = 'not_admin';

/** Codes of a person who is an administrator, and whose client does not have this scope. */
const missingScope = 'insufficient_scope';

/**
 * Checks that the person is an administrator now. The granted scopes do not say so: they are those
 * of the client.
 *
 * @throws AppError `not_administrator`, ServiceError
 */
export async function assertAdministrator(services: SessionClients): Promise<void> {
  const query = { limit: '1' };
  try {
    await services.auth((client) => client.GET('/admin/users', { params: { query } }));
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    if (error.code === missingScope) return;
    throw error.code === notAdministrator ? errors.not_administrator() : error;
  }
}
