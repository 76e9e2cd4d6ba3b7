import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { temporaryFolder } from '@tollgate/testkit/temporary-folder';
import { writeRules } from './rules-file.ts';
import type { Backend } from './scenario.ts';
import { type Service, startService } from './service-process.ts';
import { startStore } from './start-store.ts';

/** The service and what it needs, running. */
export interface TestBed {
  readonly service: Service;
  /** Processes of Redis; none with the memory backend. */
  readonly redisPids: readonly number[];
  /** Puts another rule file in the place of the one in force, at once as an editor does. */
  replaceRules(text: string): void;
  /** Stops everything and removes its files. */
  close(): Promise<void>;
}

/** What to start. */
export interface TestBedOptions {
  backend: Backend;
  rules: number;
  /** Flags of Node for the service. */
  nodeFlags: readonly string[];
}

/**
 * Starts the service with a rule file of its own, and an empty store to count in.
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
    const store = await startStore(options.backend);
    undo.push(() => store.stop());
    const service = await startService({
      runtimeRoot: folder.path,
      nodeFlags: options.nodeFlags,
      backendSettings: store.settings,
    });
    undo.push(() => service.stop());
    return { service, redisPids: store.pids, replaceRules, close };
  } catch (error) {
    await close();
    throw error;
  }
}
