import { Type } from 'typebox';
import { toFactorJson } from '../../../domain/user-json.ts';
import { createManageFactors } from '../../../use-cases/admin/manage-factors.ts';
import type { AddRoutes } from '../api.ts';
import { authenticateAdmin } from '../authenticate.ts';
import { requestFacts } from '../request-facts.ts';
import { body, optionalText } from '../schemas.ts';
import { uuidParameter } from '../uuid-parameter.ts';

const userParams = Type.Object({ user_id: Type.String() });
const params = Type.Object({ user_id: Type.String(), factor_id: Type.String() });
const changeBody = body({ friendly_name: optionalText, phone: optionalText });

/** `/admin/users/:user_id/factors` */
export const addAdminFactorRoutes: AddRoutes = (api, deps) => {
  const factors = createManageFactors(deps);
  const path = '/admin/users/:user_id/factors';

  api.get(path, { schema: { params: userParams } }, async (request, reply) => {
    await authenticateAdmin(request, deps);
    const listed = await factors.list(uuidParameter(request.params, 'user_id'));
    return reply.send(listed.map(toFactorJson));
  });

  api.put(`${path}/:factor_id`, { schema: { params, body: changeBody } }, async (request, reply) => {
    const { actor } = await authenticateAdmin(request, deps);
    const { friendly_name: friendlyName, phone } = request.body;
    const facts = requestFacts(request, deps);
    const changed = await factors.update(factorOf(request.params), { friendlyName, phone }, { actor, facts });
    return reply.send(toFactorJson(changed));
  });

  api.delete(`${path}/:factor_id`, { schema: { params } }, async (request, reply) => {
    const { actor } = await authenticateAdmin(request, deps);
    const facts = requestFacts(request, deps);
    const removed = await factors.remove(factorOf(request.params), { actor, facts });
    return reply.send(toFactorJson(removed));
  });
};

function factorOf(parameters: { readonly user_id: string; readonly factor_id: string }) {
  return {
    userId: uuidParameter(parameters, 'user_id'),
    factorId: uuidParameter(parameters, 'factor_id'),
  };
}
