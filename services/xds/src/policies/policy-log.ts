import type { Logger } from '@tollgate/kit/logger';
import { formatFinding, type PolicyReporter, type PolicyResult } from './policy-result.ts';

/** Logs problems and warnings of policies, each once until they change. */
export class PolicyLog implements PolicyReporter {
  readonly #logger: Logger;
  /** Lines of policies with problems or warnings, by id. */
  readonly #lines = new Map<string, string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  put({ id, namespace, name, label, problems, warnings, ancestors, inForce }: PolicyResult): void {
    const policy = `${namespace}/${name}`;
    const fields = { policy, ...(label === id ? undefined : { file: label }) };
    const lines = [
      ...[...problems, ...warnings].map((finding) => `${finding.reason}: ${formatFinding(finding)}`),
      ...ancestors.flatMap(({ unenforced }) =>
        unenforced === undefined ? [] : `${unenforced.reason}: ${unenforced.message}`,
      ),
    ];
    const text = lines.join('\n');
    if ((this.#lines.get(id) ?? '') === text) return;
    if (problems.length > 0)
      this.#logger.warn(
        { ...fields, problems: lines, inForce: inForce?.generation ?? 'nothing, its hosts are denied' },
        'policy has problems',
      );
    else if (text === '') this.#logger.info(fields, 'policy accepted again');
    else this.#logger.warn({ ...fields, warnings: lines }, 'policy has warnings');
    if (text === '') this.#lines.delete(id);
    else this.#lines.set(id, text);
  }

  forget(id: string): void {
    this.#lines.delete(id);
  }
}
