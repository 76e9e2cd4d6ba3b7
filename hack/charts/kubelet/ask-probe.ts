import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
} from '@tollgate/proto/grpc/health/v1/health';
import type { ContainerSpec, ProbeSpec } from './pod-spec.ts';

/** Templates allow one to five seconds, on machines that have nothing else to do. */
const timeoutMs = 20_000;

/**
 * Asks what the kubelet would ask of a container that listens on loopback.
 *
 * @throws Error when the answer is not a good one.
 */
export async function askProbe(
  probe: ProbeSpec | undefined,
  container: Pick<ContainerSpec, 'name' | 'ports'>,
): Promise<void> {
  const { grpc, httpGet } = probe ?? {};
  if (grpc !== undefined) return await askHealth(grpc.port, grpc.service ?? '');
  if (httpGet === undefined) throw new Error(`${container.name} has a probe that asks nothing`);
  const url = `http://127.0.0.1:${portOf(container, httpGet.port)}${httpGet.path}`;
  const answer = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
  const text = await answer.text();
  // The kubelet takes redirections as well.
  if (answer.status >= 400) throw new Error(`${url} answered ${answer.status}: ${text}`);
}

/** The number of a port of a container. @throws Error when no port has that name. */
export function portOf(
  { name, ports = [] }: Pick<ContainerSpec, 'name' | 'ports'>,
  port: string | number,
): number {
  if (typeof port === 'number') return port;
  const found = ports.find((one) => one.name === port);
  if (found === undefined) throw new Error(`${name} has no port ${port}`);
  return found.containerPort;
}

function askHealth(port: number, service: string): Promise<void> {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const answered = new Promise<Uint8Array>((resolve, reject) => {
    client.makeUnaryRequest(
      '/grpc.health.v1.Health/Check',
      (name: string) =>
        Buffer.from(toBinary(HealthCheckRequestSchema, create(HealthCheckRequestSchema, { service: name }))),
      (bytes) => bytes,
      service,
      { deadline: Date.now() + timeoutMs },
      (error, reply) => (reply === undefined ? reject(error ?? new Error('no answer')) : resolve(reply)),
    );
  });
  return answered
    .then((bytes) => {
      const { status } = fromBinary(HealthCheckResponseSchema, bytes);
      if (status !== HealthCheckResponse_ServingStatus.SERVING) {
        throw new Error(`${service} on port ${port} says ${HealthCheckResponse_ServingStatus[status]}`);
      }
    })
    .finally(() => client.close());
}
