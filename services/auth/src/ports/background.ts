/** Work that a request causes and nobody waits for: its failure is logged, and the service does not stop before it is done. */
export interface Background {
  /** `what` is a constant that names the work in the log. */
  run(what: string, work: () => Promise<void>): void;
}
