import { type Envoy, startEnvoy } from '@tollgate/testkit/envoy';
import { freePort } from '@tollgate/testkit/tcp';
import {
  cluster,
  extAuthzFilter,
  httpListener,
  metadata,
  rateLimitFilter,
  serverCluster,
} from '../e2e/support/envoy-config.ts';

/** Domain of the rules that the chains use. */
export const chainDomain = 'chain';

const timeout = '1s';
const authz = extAuthzFilter(timeout);
const limits = rateLimitFilter({ domain: chainDomain, failureModeDeny: true, timeout });

/**
 * The filters before the application; each of them is a listener of its name. `one` is for a path
 * that ext_authz limits itself.
 */
export const chains = {
  ...{ alone: [], authz: [authz], limits: [limits], both: [authz, limits] },
  one: [authz],
} as const;

/** A name of {@link chains}. */
export type ChainName = keyof typeof chains;

/**
 * Starts one Envoy with a listener for each chain. The application is a listener of it, too, so
 * that it costs next to nothing.
 */
export async function startChainEnvoy(ports: {
  readonly extAuthz: number;
  readonly ratelimit: number;
}): Promise<Envoy> {
  const application = await freePort();
  // In every chain, so that all do the same except for the filters.
  const actions = ['plan', 'user_id'].map((key) => metadata(key, { default_value: 'anonymous' }));
  const route = {
    match: { prefix: '/' },
    route: { cluster: 'application', rate_limits: [{ actions }] },
  };
  const response = {
    match: { prefix: '/' },
    direct_response: { status: 200, body: { inline_string: '{"id":7}\n' } },
  };
  const config = {
    static_resources: {
      listeners: [
        ...Object.entries(chains).map(([name, filters]) => httpListener({ name, routes: [route], filters })),
        httpListener({ name: 'application', port: application, routes: [response] }),
      ],
      clusters: [
        cluster('application', [application]),
        serverCluster('ext_authz', { ports: [ports.extAuthz] }),
        serverCluster('ratelimit', { ports: [ports.ratelimit] }),
      ],
    },
  };
  return startEnvoy({ config, concurrency: 1 });
}
