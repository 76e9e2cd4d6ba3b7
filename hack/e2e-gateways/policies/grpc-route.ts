import { once } from 'node:events';
import { createServer } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { gatewayAddress } from '../limiter-network.ts';

export const grpcHost = 'stock.example.com';

const group = 'gateway.networking.k8s.io';
const metadata = (name: string) => ({ name, namespace: 'shop' });
const backendRefs = [{ name: 'stock', port: 9000 }];

const policy = (name: string, target: object, spec: object) => ({
  ...{ apiVersion: 'policy.tollgate.dev/v1alpha1', kind: 'AccessPolicy', metadata: metadata(name) },
  spec: { targetRefs: [{ group, kind: 'GRPCRoute', name: 'stock', ...target }], ...spec },
});

/** A GRPCRoute with two rules, a policy of the route, and one of the rule `read`. */
export const grpcObjects: readonly object[] = [
  {
    ...{ apiVersion: `${group}/v1`, kind: 'GRPCRoute', metadata: metadata('stock') },
    spec: {
      parentRefs: [{ name: 'shop' }],
      hostnames: [grpcHost],
      rules: [
        { name: 'read', matches: [{ method: { service: 'shop.Stock', method: 'List' } }], backendRefs },
        { name: 'write', matches: [{ method: { service: 'shop.Stock' } }], backendRefs },
      ],
    },
  },
  policy('stock', {}, { limits: [{ name: 'per-user', by: ['User'], requests: 2, per: 'Year' }] }),
  policy('stock-read', { sectionName: 'read' }, { access: { type: 'Public' } }),
];

/** A gRPC service whose calls succeed. Returns its port. */
export async function startStock(): Promise<number> {
  const server = createServer();
  server.on('stream', (stream) => {
    stream.on('error', () => undefined);
    stream.respond({ ':status': 200, 'content-type': 'application/grpc', 'grpc-status': '0' });
    stream.resume().end();
  });
  server.listen(0, gatewayAddress);
  await once(server, 'listening');
  // It listens on TCP.
  return (server.address() as AddressInfo).port;
}
