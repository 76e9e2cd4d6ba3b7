import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ask } from '@tollgate/testkit/ask';
import { startRedis } from '@tollgate/testkit/redis';
import { temporaryFolder } from '@tollgate/testkit/temporary-folder';
import { writeRules } from './rules-file.ts';
import { type Service, startService } from './service-process.ts';

/** The service and what it needs, running. */
export interface TestBed {
  readonly service: Service;
  /** Absent with the memory backend. */
  readonly redisPid?: number;
  /** Puts another rule file in the place of the one in force, at once as an editor does. */
  replaceRules(text: string): void;
  /** Stops everything and removes its files. */
  close(): Promise<void>;
}

/** What to start. */
export interface TestBedOptions {
  backend: 'memory' | 'redis';
  rules: number;
  /** Flags of Node for the service. */
  nodeFlags: readonly string[];
}

/**
 * Starts the service with a rule file of its own, and an empty Redis when it needs one.
 *
 * @throws Error when one of them does not start; nothing is left running.
 */
export async function startTestBed(options: TestBedOptions): Promise<TestBed> {
  const folder = temporaryFolder();
  const undo: (() => void | Promise<void>)[] = [() => folder.remove()];
  const close = async (): Promise<void> => {
    for (let step = undo.pop(); step !== undefined; step = undo.pop()) await step();
  };
  const replaceRules = (text: string): void => {
    const aside = join(folder.path, 'aside.yaml');
    writeFileSync(aside, text);
    renameSync(aside, join(folder.path, 'config', 'bench.yaml'));
  };
  try {
    mkdirSync(join(folder.path, 'config'));
    replaceRules(writeRules(options.rules));
    const redis = options.backend === 'redis' ? await startRedis() : undefined;
    if (redis !== undefined) undo.push(() => redis.stop());
    const service = await startService({
      runtimeRoot: folder.path,
      nodeFlags: options.nodeFlags,
      ...(redis && { redisAddress: redis.address }),
    });
    undo.push(() => service.stop());
    return { service, ...(redis && { redisPid: await redisPid(redis) }), replaceRules, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function redisPid(redis: { host: string; port: number }): Promise<number> {
  const answer = await ask('INFO server\r\n', redis);
  return Number(/process_id:(\d+)/.exec(answer)?.[1]);
}
