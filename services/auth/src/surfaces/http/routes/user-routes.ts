import { toUserJson } from '../../../domain/user-json.ts';
import { errors } from '../../../errors.ts';
import type { AddRoutes } from '../api.ts';
import { authenticateUser } from '../authenticate.ts';

/** `/user`: the caller. */
export const addUserRoutes: AddRoutes = (api, deps) => {
  api.get('/user', async (request, reply) => {
    const { user, claims } = await authenticateUser(request, deps);
    const wanted = request.headers['x-jwt-aud'] ?? claims.aud;
    if (wanted !== claims.aud)
      throw errors.validation_failed({ message: "Token audience doesn't match request audience" });
    return reply.send(toUserJson(user));
  });
};
