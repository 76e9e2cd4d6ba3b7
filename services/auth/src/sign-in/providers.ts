import { errors } from '../errors.ts';
import type { AddRoutes } from '../http/api.ts';

/**
 * Routes of GoTrue's features that are not supported yet. Responses are those of a server that has
 * them disabled.
 */
export const addDisabledRoutes: AddRoutes = (api) => {
  const schema = { hide: true };
  const refuseSaml = async (): Promise<never> => {
    await Promise.resolve();
    throw errors.saml_provider_disabled();
  };
  // Rejects before the body is read.
  const saml = { schema, onRequest: refuseSaml };
  api.post('/sso', saml, refuseSaml);
  api.post('/sso/saml/acs', saml, refuseSaml);
  api.get('/sso/saml/metadata', { ...saml, exposeHeadRoute: false }, refuseSaml);
};
