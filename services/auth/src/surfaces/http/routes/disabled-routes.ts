import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { errors } from '../../../errors.ts';
import { refuseProvider } from '../../../use-cases/token/refuse-provider-grants.ts';
import type { AddRoutes } from '../api.ts';
import { authenticateUser } from '../authenticate.ts';

const authorizeQuery = Type.Object({ provider: Type.Optional(Type.String()) });

/** Paths of GoTrue for features that are not served yet: they answer as a server on which these are disabled. */
export const addDisabledRoutes: AddRoutes = (api, deps) => {
  const schema = { hide: true };
  const authorize = { schema: { ...schema, querystring: authorizeQuery }, exposeHeadRoute: false };
  api.get('/authorize', authorize, (request) => refuseProvider(request.query.provider ?? ''));

  const refuseLinking = async (request: FastifyRequest): Promise<never> => {
    await authenticateUser(request, deps);
    throw errors.manual_linking_disabled();
  };
  api.get('/user/identities/authorize', { schema, exposeHeadRoute: false }, refuseLinking);
  api.delete('/user/identities/:identity_id', { schema }, refuseLinking);

  const refuseSaml = async (): Promise<never> => {
    await Promise.resolve();
    throw errors.saml_provider_disabled();
  };
  // Before the body is read.
  const saml = { schema, onRequest: refuseSaml };
  api.post('/sso', saml, refuseSaml);
  api.post('/sso/saml/acs', saml, refuseSaml);
  api.get('/sso/saml/metadata', { ...saml, exposeHeadRoute: false }, refuseSaml);
};
