import { startEcho } from '@tollgate/testkit/echo';
import { startEnvoy } from '@tollgate/testkit/envoy';
import t from 'tap';

const routerOnly = (upstreamPort: number) => ({
  static_resources: {
    listeners: [
      {
        name: 'ingress',
        address: { socket_address: { address: '127.0.0.1', port_value: 0 } },
        filter_chains: [
          {
            filters: [
              {
                name: 'envoy.filters.network.http_connection_manager',
                typed_config: {
                  '@type':
                    'type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager',
                  stat_prefix: 'ingress',
                  route_config: {
                    virtual_hosts: [
                      {
                        name: 'app',
                        domains: ['*'],
                        routes: [{ match: { prefix: '/' }, route: { cluster: 'echo' } }],
                      },
                    ],
                  },
                  http_filters: [
                    {
                      name: 'envoy.filters.http.router',
                      typed_config: {
                        '@type': 'type.googleapis.com/envoy.extensions.filters.http.router.v3.Router',
                      },
                    },
                  ],
                },
              },
            ],
          },
        ],
      },
    ],
    clusters: [
      {
        name: 'echo',
        type: 'STATIC',
        load_assignment: {
          cluster_name: 'echo',
          endpoints: [
            {
              lb_endpoints: [
                {
                  endpoint: {
                    address: { socket_address: { address: '127.0.0.1', port_value: upstreamPort } },
                  },
                },
              ],
            },
          ],
        },
      },
    ],
  },
});

t.test('an Envoy passes requests to an echo upstream', async (t) => {
  const echo = await startEcho();
  t.teardown(echo.stop);
  const envoy = await startEnvoy({ config: routerOnly(echo.port) });
  t.teardown(envoy.stop);

  const response = await fetch(`http://127.0.0.1:${envoy.port}/hello?x=1`, { method: 'POST', body: 'hi' });
  t.equal(response.status, 200);
  t.match(await response.json(), { method: 'POST', path: '/hello?x=1', body: 'hi' });
  t.equal(echo.requests.length, 1);
  t.same(Object.keys(envoy.ports), ['ingress']);

  const info = await fetch(`http://127.0.0.1:${envoy.adminPort}/server_info`);
  t.match(await info.json(), { state: 'LIVE', version: /\/1\.40\./ });
});

t.test('an Envoy that refuses its bootstrap reports the reason', async (t) => {
  await t.rejects(startEnvoy({ config: 'static_resources: { no_such_field: 1 }' }), {
    message: /no_such_field/,
  });
});
