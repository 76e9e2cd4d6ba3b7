import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
} from '@tollgate/proto/grpc/health/v1/health';
import type { Container, Probe } from './manifest-object.ts';

/** The kubelet's own default is one second; this machine has other work. */
const timeoutMs = 5000;

/**
 * Asks what the kubelet would ask of a container that listens on loopback.
 *
 * @throws Error when the answer is not a good one.
 */
export async function askProbe(probe: Probe | undefined, container: Container): Promise<void> {
  if (probe?.grpc !== undefined) return await askHealth(probe.grpc.port, probe.grpc.service);
  if (probe?.httpGet === undefined) throw new Error(`${container.name} has a probe that asks nothing`);
  const { path, port } = probe.httpGet;
  const number = container.ports?.find(({ name }) => name === port)?.containerPort;
  if (number === undefined) throw new Error(`${container.name} has no port ${port}`);
  const url = `http://127.0.0.1:${number}${path}`;
  const answer = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
  // The kubelet takes redirections as well.
  if (answer.status >= 400) throw new Error(`${url} answered ${answer.status}: ${await answer.text()}`);
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
