import type { Steps } from '@tollgate/kit/time';
import { encodeBits, listRules } from '@tollgate/rules/matched';
import type { RuleNode } from '@tollgate/rules/rule-set';

/** The rules of a domain in force, and on trial. */
export interface ReportedDomain {
  readonly root: RuleNode;
  readonly trialRoot: RuleNode | undefined;
}

type BitsByDomain = ReadonlyMap<string, string>;

/** Domains of one report, of about 300 bytes at most. The rest follows a minute later. */
const maxDomains = 500;

/**
 * Tells the xDS server which rules have matched requests: bits by domain, and only of domains whose
 * bits have changed since they were reported on the same stream.
 */
export class MatchReport {
  #reported = new Map<string, string>();
  #isFirst: boolean = true;

  /** The server has forgotten what an earlier stream has reported. */
  startStream(): void {
    this.#reported = new Map();
    this.#isFirst = true;
  }

  /** Undefined when there is nothing to report. The first report of a stream may be empty. */
  *collect(domains: ReadonlyMap<string, ReportedDomain>): Steps<BitsByDomain | undefined> {
    const changed = new Map<string, string>();
    for (const [name, { root, trialRoot }] of domains) {
      const rules = [...listRules(root), ...(trialRoot === undefined ? [] : listRules(trialRoot))];
      const bits = encodeBits(rules.map(({ matched }) => matched));
      if (bits !== undefined && bits !== this.#reported.get(name)) changed.set(name, bits);
      if (changed.size === maxDomains) break;
      yield;
    }
    return changed.size > 0 || this.#isFirst ? changed : undefined;
  }

  /** The report was sent. */
  sent(report: BitsByDomain): void {
    for (const [name, bits] of report) this.#reported.set(name, bits);
    this.#isFirst = false;
  }
}
