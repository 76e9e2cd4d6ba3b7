import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { addAbortSignal, type Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { getHeapSnapshot } from 'node:v8';
import { isLocalCaller } from '@tollgate/kit/local-caller';
import { errors } from '../errors.ts';
import { type DebugPage, getBaseUrl, type HttpReply, type HttpRequest, textReply } from './router.ts';

/**
 * Takes a CPU profile for that time, or until `signal` aborts, in the format of `.cpuprofile`
 * files.
 */
async function takeCpuProfile(durationMs: number, signal: AbortSignal): Promise<Profiler.Profile> {
  const session = new Session();
  session.connect();
  try {
    await session.post('Profiler.enable');
    await session.post('Profiler.start');
    await delay(durationMs, undefined, { signal }).catch(() => undefined);
    return (await session.post('Profiler.stop')).profile;
  } finally {
    session.disconnect();
  }
}

const defaultSeconds = 10;
/** A profile grows by about 1 MB in ten seconds, and blocks other profiles. */
const maxSeconds = 60;
/** Limit of the transfer of a snapshot, which keeps its memory. */
const heapTransferTimeoutMs = 300_000;

const profileHelp = `CPU profile of ?seconds=N (1 to ${maxSeconds}, default ${defaultSeconds}) for Chrome DevTools`;
const heapHelp = 'heap snapshot for Chrome DevTools; local callers only, pauses the service';
const traceHelp = 'not supported: Node has no execution tracer like Go';

/** Takes one profile at a time. */
class ProcessProfiler {
  readonly #stopping: AbortSignal;
  #busy: boolean = false;

  /** `stopping` ends a running profile. */
  constructor(stopping: AbortSignal) {
    this.#stopping = stopping;
  }

  async getProfile(request: HttpRequest): Promise<HttpReply> {
    const seconds = parseSeconds(request.url);
    this.#lock();
    try {
      const signal = AbortSignal.any([this.#stopping, getDisconnectSignal(request)]);
      const profile = await takeCpuProfile(seconds * 1000, signal);
      return attach('ratelimit.cpuprofile', JSON.stringify(profile));
    } finally {
      this.#unlock();
    }
  }

  getHeapSnapshot(): HttpReply {
    this.#lock();
    try {
      // V8 creates it at once; then its memory is released as fast as the caller reads it.
      const snapshot = addAbortSignal(AbortSignal.timeout(heapTransferTimeoutMs), getHeapSnapshot());
      snapshot.once('close', () => this.#unlock());
      return attach('ratelimit.heapsnapshot', snapshot);
    } catch (error) {
      this.#unlock();
      throw error;
    }
  }

  #lock(): void {
    if (this.#busy) {
      throw errors.profile_in_progress();
    }
    this.#busy = true;
  }

  #unlock(): void {
    this.#busy = false;
  }
}

/** The pages below `/debug/pprof/`. */
export function profilingPages(stopping: AbortSignal): readonly DebugPage[] {
  const profiler = new ProcessProfiler(stopping);
  return [
    {
      path: '/debug/pprof/',
      help: 'profiles, and how to take them',
      get: (request) => textReply(formatOverview(getBaseUrl(request))),
    },
    {
      path: '/debug/pprof/profile',
      help: profileHelp,
      get: (request) => profiler.getProfile(request),
    },
    {
      path: '/debug/pprof/heap',
      help: heapHelp,
      get(request) {
        if (!isLocalCaller(request)) {
          throw errors.local_callers_only();
        }
        return profiler.getHeapSnapshot();
      },
    },
    {
      path: '/debug/pprof/trace',
      help: traceHelp,
      get() {
        throw errors.no_execution_trace();
      },
    },
  ];
}

function parseSeconds(url: string): number {
  const text = new URL(url, 'http://localhost').searchParams.get('seconds');
  const seconds = text === null ? defaultSeconds : Number(text);
  if (text !== null && (!/^\d{1,4}$/.test(text) || seconds < 1 || seconds > maxSeconds)) {
    throw errors.malformed_request({
      message: `seconds must be a whole number from 1 to ${maxSeconds}, not '${text}'`,
    });
  }
  return seconds;
}

/** Aborts when the caller closes the connection. */
function getDisconnectSignal({ response }: HttpRequest): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  return gone.signal;
}

function attach(fileName: string, body: string | Readable): HttpReply {
  const headers = {
    'content-type': 'application/octet-stream',
    'content-disposition': `attachment; filename="${fileName}"`,
    'x-content-type-options': 'nosniff',
  };
  return { headers, body };
}

function formatOverview(base: string): string {
  return `Profiles of this process, one at a time. Open the files in Chrome DevTools (Performance, Memory) or in VS Code.

profile: ${profileHelp}
  curl -fOJ '${base}/debug/pprof/profile?seconds=${defaultSeconds}'

heap: ${heapHelp}
  Taking it needs several times the memory of the heap. It contains everything in memory, including secrets.
  curl -fOJ '${base}/debug/pprof/heap'

trace: ${traceHelp}
`;
}
