import { create, fromBinary, type JsonObject } from '@bufbuild/protobuf';
import { anyPack, StringValueSchema } from '@bufbuild/protobuf/wkt';
import { getErrorMessage } from '@tollgate/kit/errors';
import { createLogger } from '@tollgate/kit/logger';
import type { TestResponse } from '@tollgate/testkit/ads-server';
import { awaitUntil } from '@tollgate/testkit/await-until';
import type { Test } from 'tap';
import { AdsClient, type AdsClientContext, type AdsClientOptions } from '../../src/client.ts';
import { type ResourceSet, stateOfTheWorld } from '../../src/state-of-the-world.ts';
import type { ResourceSubscriber } from '../../src/subscription.ts';

export const typeUrl = `type.googleapis.com/${StringValueSchema.typeName}`;

/**
 * A response whose resources are texts. A subscriber rejects the text `bad`, and `partly bad`
 * without the other texts of the set.
 */
export function textsResponse(version: string, ...texts: readonly string[]): TestResponse {
  const resources = texts.map((value) => anyPack(StringValueSchema, create(StringValueSchema, { value })));
  return { versionInfo: version, typeUrl, resources };
}

/** A client of one test. */
export interface TestClient {
  /** The sets that were applied, in order. */
  readonly sets: readonly (readonly string[])[];
  /** Whether the responses were accepted, in order. */
  readonly answers: readonly boolean[];
  readonly connected: readonly boolean[];
  readonly logLines: readonly Readonly<Record<string, unknown>>[];
  /** Pending until the client has started. */
  readonly started: Promise<void>;
  /** Resolves when this set was applied last. */
  inForce(...texts: readonly string[]): Promise<void>;
  /** Resolves with the first line of that message. */
  logged(message: RegExp): Promise<Readonly<Record<string, unknown>>>;
  close(): Promise<void>;
}

type Options = AdsClientOptions<ResourceSet>;

interface FollowOptions extends Partial<Omit<Options, 'stream'>> {
  readonly stream?: Partial<Options['stream']>;
  /** Texts that the next reports have, each once. */
  readonly reports?: string[];
  readonly signal?: AbortSignal;
}

/** Starts a client with short pauses; it is closed when the test ends. */
export function followServer(
  t: Test,
  serverUrl: string,
  { stream, reports = [], signal, ...options }: FollowOptions = {},
  context: Partial<AdsClientContext> = {},
): TestClient {
  const sets: string[][] = [];
  const answers: boolean[] = [];
  const connected: boolean[] = [];
  const logLines: Record<string, unknown>[] = [];
  // Parsed boundary: the JSON format is one object a line.
  const write = (line: string): void => void logLines.push(JSON.parse(line) as Record<string, unknown>);
  const client = new AdsClient(
    {
      protocol: stateOfTheWorld,
      node: { id: 'test', userAgentName: 'tollgate-test', metadata: {} },
      tls: undefined,
      backoff: { connectRetryMs: 20, initialMs: 40, maxMs: 100, jitter: 0 },
      reportIntervalMs: 0,
      maxMessageSetting: 'MAX_MESSAGE_BYTES',
      ...options,
      stream: { serverUrl, headers: {}, maxMessageBytes: 4_194_304, ...stream },
    },
    {
      random: () => 0.5,
      logger: createLogger({ level: 'trace', format: 'json', destination: { write } }),
      onConnected: (isConnected) => void connected.push(isConnected),
      onCertificate: () => undefined,
      ...context,
    },
  );
  t.teardown(() => client.close());
  const subscriber: ResourceSubscriber<ResourceSet> = {
    typeName: StringValueSchema.typeName,
    async apply({ resources }) {
      try {
        const texts = resources.map((bytes) => fromBinary(StringValueSchema, bytes).value);
        const bad = texts.find((text) => text.startsWith('bad'));
        if (bad !== undefined) return { ok: false, problem: `${bad} is rejected` };
        const isPartly = texts[0] === 'partly bad';
        sets.push(isPartly ? texts.slice(1) : texts);
        return isPartly ? { ok: false, problem: 'partly bad is rejected', isInForce: true } : { ok: true };
      } catch (error) {
        return { ok: false, problem: getErrorMessage(error) };
      }
    },
    onAnswer: (accepted) => void answers.push(accepted),
    async collectReport() {
      const [text] = reports;
      const metadata: JsonObject = { text: text ?? '' };
      return text === undefined ? undefined : { metadata, sent: () => void reports.shift() };
    },
  };
  const started = client.start(subscriber, { signal });

  return {
    sets,
    answers,
    connected,
    logLines,
    started,
    close: () => client.close(),
    async inForce(...texts) {
      await awaitUntil(() => sets.at(-1)?.join() === texts.join(), { what: `the set ${texts.join()}` });
      t.same(sets.at(-1), texts, 'in force');
    },
    async logged(message) {
      const find = () => logLines.find((line) => message.test(String(line['@message'])));
      const line = await awaitUntil(find, { what: `a log line ${message}` });
      return line ?? {};
    },
  };
}
