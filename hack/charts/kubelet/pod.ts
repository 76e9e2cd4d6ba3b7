import { execFile } from 'node:child_process';
import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { Client, credentials } from '@grpc/grpc-js';
import { isFree } from '@tollgate/kit/server-process';
import {
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus,
  HealthCheckResponseSchema,
} from '@tollgate/proto/grpc/health/v1/health';
import { temporaryFolder } from '@tollgate/testkit/folders';
import { type ServerProcess, startServerProcess } from '@tollgate/testkit/processes';
import type { Test } from 'tap';
import { type ContainerMount, containerCommand, containerEnvironment } from './container.ts';
import {
  type ContainerSpec,
  getField,
  type PodSpec,
  type PodSurroundings,
  type ProbeSpec,
  serviceAccountVolume,
  writeVolumes,
} from './pod-spec.ts';
import type { ServiceImage } from './service-image.ts';

/** Templates allow one to five seconds, on machines that have nothing else to do. */
const timeoutMs = 20_000;

/**
 * Asks what the kubelet would ask of a container that listens on loopback.
 *
 * @throws Error when the answer is not a good one.
 */
async function askProbe(
  probe: ProbeSpec | undefined,
  container: Pick<ContainerSpec, 'name' | 'ports'>,
): Promise<void> {
  const { grpc, httpGet } = probe ?? {};
  if (grpc !== undefined) return await askHealth(grpc.port, grpc.service ?? '');
  if (httpGet === undefined) throw new Error(`${container.name} has a probe that asks nothing`);
  const url = `http://127.0.0.1:${findPort(container, httpGet.port)}${httpGet.path}`;
  const answer = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
  const text = await answer.text();
  // The kubelet takes redirections as well.
  if (answer.status >= 400) throw new Error(`${url} answered ${answer.status}: ${text}`);
}

function findPort(
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

export interface StartedPod extends ServerProcess {
  /** Runs every probe once. @throws Error when one fails. */
  askProbes(): Promise<void>;
  /** A port by its name. Pods listen on loopback, too. */
  port(name: string): number;
  /** The output of another command in its container, as with `kubectl exec`. */
  exec(args: readonly string[]): Promise<string>;
}

/** Parts that a node and its cluster provide for all Pods. */
export interface PodNode {
  /** The images that are there, by the references of containers. */
  readonly findImage: (reference: string) => ServiceImage | undefined;
  /** Addresses by name, as the DNS server of a cluster has them. */
  readonly hosts: Readonly<Record<string, string | readonly string[]>>;
  /** Variables that a kubelet gives every container: where the API server is. */
  readonly environment: Readonly<Record<string, string>>;
  /** A folder of this machine in which Pods keep compiled code, which later ones load. */
  readonly compileCache?: string | undefined;
}

export interface PreparedPod {
  readonly spec: PodSpec;
  readonly node: PodNode;
  readonly surroundings: PodSurroundings;
}

/** Migrations take a second on an idle machine. */
const startTimeoutMs = 60_000;

const run = promisify(execFile);

/**
 * Runs the init containers of a Pod one after the other and starts its container: each a process
 * that sees the files of its image and the volumes at the paths of the template, all but empty
 * directories read-only, and that has the variables of the template. Ready when the probes say so.
 * Stopped when the test ends.
 *
 * @throws Error when something that the Pod needs is missing, an init container fails, or a probe
 * does not succeed in time.
 */
export async function startPod(t: Test, pod: PreparedPod): Promise<StartedPod> {
  const { spec } = pod;
  const [container, ...others] = spec.containers;
  if (container === undefined || others.length > 0) throw new Error('a Pod of ours has one container');
  const { launch, remove } = writePod(pod);
  t.teardown(remove);
  for (const first of spec.initContainers ?? []) {
    const { command, args } = launch(first);
    await run(command, args, { timeout: startTimeoutMs });
  }
  await expectFree(container);
  const server = await startServerProcess({
    ...launch(container),
    async ready() {
      await askProbe(container.startupProbe, container);
      await askProbe(container.readinessProbe, container);
    },
    readyTimeoutMs: startTimeoutMs,
  });
  t.teardown(server.stop);
  return {
    ...server,
    async askProbes() {
      for (const probe of [container.startupProbe, container.readinessProbe, container.livenessProbe]) {
        await askProbe(probe, container);
      }
    },
    port: (name) => findPort(container, name),
    async exec(args) {
      const { command, args: all } = launch({ ...container, args });
      return (await run(command, all, { timeout: startTimeoutMs })).stdout;
    },
  };
}

/** Pods share one address here: the probes of one must not be answered by another. */
async function expectFree({ name, ports = [] }: ContainerSpec): Promise<void> {
  for (const { containerPort } of ports) {
    if (!(await isFree(containerPort)))
      throw new Error(`${name} cannot have the port ${containerPort}: it is taken`);
  }
}

/**
 * Runs a Pod that ends by itself, such as one of `helm test`, and answers what it printed.
 *
 * @throws Error when it fails.
 */
export async function runPod(pod: PreparedPod): Promise<string> {
  const [container] = pod.spec.containers;
  if (container === undefined) throw new Error('a Pod without a container');
  const { launch, remove } = writePod(pod);
  try {
    const { command, args } = launch(container);
    const { stdout } = await run(command, args, { timeout: startTimeoutMs });
    return stdout;
  } finally {
    remove();
  }
}

/**
 * Writes the volumes of a Pod, until they are removed; `launch` says how each of its containers is
 * run.
 */
function writePod({ spec, node, surroundings }: PreparedPod) {
  const folder = temporaryFolder();
  const root = join(folder.path, 'root');
  mkdirSync(root);
  const hostsFile = join(folder.path, 'hosts');
  writeFileSync(
    hostsFile,
    Object.entries({ localhost: '127.0.0.1', ...node.hosts })
      .flatMap(([name, addresses]) => [addresses].flat().map((address) => `${address} ${name}\n`))
      .join(''),
  );
  // Names are resolved from that file only, without a name server.
  const lookupFile = join(folder.path, 'nsswitch.conf');
  writeFileSync(lookupFile, 'hosts: files\n');
  // Otherwise the first address of a name would be the only one.
  const resolverFile = join(folder.path, 'host.conf');
  writeFileSync(resolverFile, 'multi on\n');
  const withToken = spec.automountServiceAccountToken !== false;
  const { volume, mountPath } = serviceAccountVolume;
  const volumes = [...(spec.volumes ?? []), ...(withToken ? [volume] : [])];
  const folders = writeVolumes({ ...spec, volumes }, folder.path, surroundings);

  const launch = (container: ContainerSpec) => {
    const image = node.findImage(container.image);
    if (image === undefined) throw new Error(`there is no image ${container.image}`);
    const user = spec.securityContext?.runAsUser ?? image.user;
    const compileCache =
      node.compileCache === undefined ? undefined : mountCompileCache(node.compileCache, user);
    const mounted = [
      ...(container.volumeMounts ?? []),
      ...(withToken ? [{ name: volume.name, mountPath, readOnly: true }] : []),
    ].map(({ name, mountPath: target, readOnly = false }): ContainerMount => {
      const source = folders.get(name);
      if (source === undefined) throw new Error(`${container.name} mounts ${name}, which is no volume`);
      return { source, target, readOnly };
    });
    const given: ContainerMount[] = [
      ...Object.entries(image.files).map(([target, source]) => ({ source, target, readOnly: true })),
      { source: hostsFile, target: '/etc/hosts', readOnly: true },
      { source: lookupFile, target: '/etc/nsswitch.conf', readOnly: true },
      { source: resolverFile, target: '/etc/host.conf', readOnly: true },
      ...(compileCache === undefined ? [] : [compileCache]),
    ];
    return containerCommand({
      root,
      rootFolder: image.rootFolder,
      mounts: [...given, ...mounted],
      workingFolder: image.workingFolder,
      user,
      environment: {
        ...image.environment,
        ...(compileCache && { NODE_COMPILE_CACHE: compileCache.target }),
        HOSTNAME: getField(surroundings, 'metadata.name'),
        ...node.environment,
        ...containerEnvironment(container, surroundings),
      },
      command: [
        ...(container.command ?? image.entrypoint),
        ...(container.args ?? (container.command === undefined ? image.command : [])),
      ],
    });
  };
  return { launch, remove: folder.remove };
}

/** Each user has a folder of its own, because it runs what it finds there. */
function mountCompileCache(parent: string, user: number): ContainerMount {
  const source = join(parent, `pods-${user}`);
  mkdirSync(source, { recursive: true });
  if (process.getuid?.() === 0) chownSync(source, user, user);
  return { source, target: '/node-compile-cache', readOnly: false };
}
