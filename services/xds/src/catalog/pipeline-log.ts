import type { Logger } from '@tollgate/kit/logger';
import type { XdsMetrics } from '../metrics.ts';
import type { SourceProblem } from '../sources/source.ts';
import { type AcceptedReason, acceptedReasons, type Verdict } from './accepted.ts';
import type { Snapshot } from './snapshot.ts';

/** What the pipeline says: of each object and each problem once, until it changes. */
export interface PipelineLog {
  /** Objects of which there is something new to say. */
  verdicts(verdicts: readonly Verdict[]): void;
  forgotten(ids: readonly string[]): void;
  /** All that the source could not take for objects. */
  problems(problems: readonly SourceProblem[]): void;
  served(
    snapshot: Snapshot,
    context: { readonly rules: number; readonly before: Snapshot | undefined },
  ): void;
  emptyHeldBack(served: Snapshot | undefined): void;
}

/** Lines of one turn; a broken template makes one for each object, and the page shows them all. */
const maxLines = 100;

/** Makes a log that has said nothing. */
export function createPipelineLog(logger: Logger): PipelineLog {
  /** Objects that were told to be not accepted, with what was said. */
  const refused = new Map<string, string>();
  let problems = new Set<string>();

  /** Is there something to say, and was it not said before? */
  function isNews({ id, accepted }: Verdict): boolean {
    if (accepted.status === 'True') return refused.delete(id);
    if (refused.get(id) === accepted.message) return false;
    refused.set(id, accepted.message);
    return true;
  }

  function tell({ id, label, generation, accepted }: Verdict): void {
    const fields = { object: id, ...(label === id ? undefined : { file: label }), generation };
    if (accepted.status === 'True') logger.info(fields, 'object accepted again');
    else
      logger.warn({ ...fields, reason: accepted.reason, problem: accepted.message }, 'object not accepted');
  }

  return {
    verdicts(verdicts) {
      const news = verdicts.filter(isNews);
      for (const verdict of news.slice(0, maxLines)) tell(verdict);
      const left = news.length - maxLines;
      if (left > 0) logger.warn({ objects: left }, 'there is news of more objects; the debug page shows all');
    },
    forgotten(ids) {
      for (const id of ids) refused.delete(id);
    },
    problems(told) {
      const lines = told.map(({ source, message }) => `${source}: ${message}`);
      const news = lines.filter((line) => !problems.has(line));
      problems = new Set(lines);
      for (const problem of news.slice(0, maxLines)) logger.warn({ problem }, 'source not understood');
    },
    served(snapshot, { rules, before }) {
      const fields = { domains: snapshot.resources.size, rules, version: snapshot.version };
      const lifted = snapshot.resources.size === 0 && (before?.resources.size ?? 0) > 0;
      if (lifted) logger.warn(fields, 'no rules left: limiters are told to lift every limit');
      else logger.info(fields, 'rules served');
    },
    emptyHeldBack(served) {
      logger.warn(
        { domains: served?.resources.size ?? 0 },
        'no rules left: limiters keep those they have, because XDS_ALLOW_EMPTY=false',
      );
    },
  };
}

/** Counts objects by the reason of their condition Accepted; reasons that nobody has are 0, so that alerts can be made of them. */
export function countObjects({ objects }: Pick<XdsMetrics, 'objects'>, verdicts: Iterable<Verdict>): void {
  const counts = new Map<AcceptedReason, number>();
  for (const { accepted } of verdicts) counts.set(accepted.reason, (counts.get(accepted.reason) ?? 0) + 1);
  for (const reason of acceptedReasons) objects.set({ reason }, counts.get(reason) ?? 0);
}
