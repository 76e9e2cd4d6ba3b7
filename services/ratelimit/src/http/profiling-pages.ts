import type { Profiler } from 'node:inspector';
import { Session } from 'node:inspector/promises';
import { addAbortSignal } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { getHeapSnapshot } from 'node:v8';
import type { FastifyReply } from 'fastify';
import { errors } from '../errors.ts';
import { baseUrl, type DebugPage, isLocalCaller, sendText } from './debug-page.ts';

/** Watches what the CPU is spent on, for so long or until `signal` aborts, and answers what `.cpuprofile` files hold. */
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
/** A profile grows by about 1 MB in ten seconds, and nobody else can take one meanwhile. */
const maxSeconds = 60;
/** How long a snapshot may take to be fetched before its memory is given back. */
const heapTransferTimeoutMs = 300_000;

const profileHelp = `CPU profile of ?seconds=N (1 to ${maxSeconds}, default ${defaultSeconds}) for Chrome DevTools`;
const heapHelp = 'heap snapshot for Chrome DevTools; local callers only, halts the service for a moment';
const traceHelp = 'not there: Node has no execution tracer like that of Go';

/** The pages below `/debug/pprof/`. Only one profile is taken at a time; `stopping` ends the one being taken. */
export function profilingPages(stopping: AbortSignal): readonly DebugPage[] {
  let busy = false;

  /** Keeps others from profiling until the returned function is called. */
  function occupy(): () => void {
    if (busy) {
      throw errors.profile_in_progress();
    }
    busy = true;
    return () => {
      busy = false;
    };
  }

  async function sendProfile(reply: FastifyReply, seconds: number): Promise<FastifyReply> {
    const release = occupy();
    try {
      const signal = AbortSignal.any([stopping, callerGone(reply)]);
      const profile = await takeCpuProfile(seconds * 1000, signal);
      return attach(reply, 'ratelimit.cpuprofile').send(JSON.stringify(profile));
    } finally {
      release();
    }
  }

  function sendHeapSnapshot(reply: FastifyReply): FastifyReply {
    const release = occupy();
    try {
      // V8 makes the whole of it at once; from here it leaves memory as fast as the caller takes it.
      const snapshot = addAbortSignal(AbortSignal.timeout(heapTransferTimeoutMs), getHeapSnapshot());
      snapshot.once('close', release);
      return attach(reply, 'ratelimit.heapsnapshot').send(snapshot);
    } catch (error) {
      release();
      throw error;
    }
  }

  return [
    {
      path: '/debug/pprof/',
      help: 'profiles, and how to take them',
      get: (request, reply) => sendText(reply, overview(baseUrl(request))),
    },
    {
      path: '/debug/pprof/profile',
      help: profileHelp,
      get: (request, reply) => sendProfile(reply, readSeconds(request.url)),
    },
    {
      path: '/debug/pprof/heap',
      help: heapHelp,
      get(request, reply) {
        if (!isLocalCaller(request)) {
          throw errors.local_callers_only();
        }
        return sendHeapSnapshot(reply);
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

function readSeconds(url: string): number {
  const text = new URL(url, 'http://localhost').searchParams.get('seconds');
  const seconds = text === null ? defaultSeconds : Number(text);
  if (text !== null && (!/^\d{1,4}$/.test(text) || seconds < 1 || seconds > maxSeconds)) {
    throw errors.malformed_request({
      message: `seconds must be a whole number from 1 to ${maxSeconds}, not '${text}'`,
    });
  }
  return seconds;
}

/** Aborts when the caller hangs up before the answer. */
function callerGone(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort());
  return gone.signal;
}

function attach(reply: FastifyReply, fileName: string): FastifyReply {
  return reply
    .type('application/octet-stream')
    .header('content-disposition', `attachment; filename="${fileName}"`)
    .header('x-content-type-options', 'nosniff');
}

function overview(base: string): string {
  return `Profiles of this process, one at a time. Open the files in Chrome DevTools (Performance, Memory) or in VS Code.

profile: ${profileHelp}
  curl -fOJ '${base}/debug/pprof/profile?seconds=${defaultSeconds}'

heap: ${heapHelp}
  It needs several times the memory of the heap for a moment, and holds whatever is in memory, secrets included.
  curl -fOJ '${base}/debug/pprof/heap'

trace: ${traceHelp}
`;
}
