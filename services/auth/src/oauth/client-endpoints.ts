import type { AddRoutes } from '../http/api.ts';
import { ClientAssertions } from './client-assertion.ts';
import { addDeviceRoute } from './device-authorization.ts';
import type { GrantContext } from './grant.ts';
import { addIntrospectionRoute } from './introspection.ts';
import { addPushedRequestRoute } from './pushed-request.ts';
import { addRevocationRoute } from './revocation.ts';
import { addTokenRoute } from './token.ts';

/** The routes that clients authenticate at, with keys of clients that all of them use. */
export const addClientEndpoints: AddRoutes<GrantContext> = (api, context) => {
  const within = { ...context, clientAssertions: new ClientAssertions(context) };
  addTokenRoute(api, within);
  addDeviceRoute(api, within);
  addPushedRequestRoute(api, within);
  addRevocationRoute(api, within);
  addIntrospectionRoute(api, within);
};
