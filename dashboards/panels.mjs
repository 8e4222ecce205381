// All panels, as values. build.mjs makes the dashboards of Grafana from them, and tests run every query.
//
// In a query, HOST stands for the selector of the chosen hosts, and 5m for the time over which rates are taken.

/// The labels of a place: large machines have packages or boards in place of nodes.
const PLACE = "node, package, board";
const place = "{{node}}{{package}}{{board}}";
const rate = (metric, labels = "") => `rate(${metric}{HOST${labels && `,${labels}`}}[5m])`;
const sum = (by, what) => `sum by (${by}) (${what})`;
const remoteShare = (by) =>
  `${sum(by, rate("numakit_node_allocations_total", 'kind="remote"'))} / (${sum(by, rate("numakit_node_allocations_total", 'kind=~"local|remote"'))} > 0)`;
const awayFaults = `1 - ${sum("instance", rate("numakit_hint_faults_local_total"))} / (${sum("instance", rate("numakit_hint_faults_total"))} > 0)`;
const busy = (by) => sum(by, rate("numakit_node_cpu_seconds_total", 'mode=~"user|system"'));
const memory = (state) => `numakit_node_memory_bytes{HOST,state="${state}"}`;
const freePart = `${sum(`instance, ${PLACE}`, memory("free"))} / ${sum(`instance, ${PLACE}`, memory("total"))}`;

/// A panel: what it asks, the unit of Grafana, and queries with the text of their legends.
const panel = (title, about, unit, ...queries) => ({
  title, about, unit, queries: queries.map(([query, legend]) => ({ query, legend })),
});

const ofHosts = [
  panel("Remote share of allocations", "Pages that a node's memory gave to CPUs of other nodes, of all that it gave. Near 0 where programs stay near their memory.",
    "percentunit", [remoteShare("instance"), "{{instance}}"]),
  panel("Remote share of sampled accesses", "Of the page faults by which NUMA balancing samples who uses a page, those from another node. Absent where balancing is off.",
    "percentunit", [awayFaults, "{{instance}}"]),
  panel("Fullest node", "Free memory of the node that has least, as a part of its own. What does not fit on a node goes to another one.",
    "percentunit", [`min by (instance) (${freePart})`, "{{instance}}"]),
  panel("Memory moved", "By NUMA balancing, compaction, and programs that ask for it. Moving costs time, and helps only what stays.",
    "Bps", [sum("instance", rate("numakit_migrated_bytes_total", 'result="moved"')), "{{instance}}"]),
  panel("Busy CPUs", "CPU time of programs and of the kernel for them, in CPUs.",
    "none", [busy("instance"), "{{instance}}"]),
  panel("Waiting for memory", "The part of the time in which at least one thread waited for memory to be freed.",
    "percentunit", [sum("instance", rate("numakit_pressure_seconds_total", 'resource="memory"')), "{{instance}}"]),
];

const jobs = 'job=~"$job"';
const ofJob = (by, metric, labels = "") => sum(by, rate(metric, `${jobs}${labels && `,${labels}`}`));

// Memory and CPU time of a job at the same place belong together: what is left is away from the threads.
const awayMemory = (labels = "") => {
  const memory = `numakit_job_node_memory_bytes{HOST${labels && `,${labels}`}}`;
  const cpu = rate("numakit_job_node_cpu_seconds_total", labels);
  return `1 - ${sum("instance, job", `${memory} * ${cpu}`)} / (${sum("instance, job", memory)} * ${sum("instance, job", cpu)} > 0)`;
};

const awayJobs = panel("Memory away from its job",
  "The part of a job's memory that is not where its threads run, of the ten jobs with most. Memory spread over all nodes is away too.",
  "percentunit", [`topk(10, ${awayMemory()})`, "{{instance}}, {{job}}"]);

export const DASHBOARDS = [
  {
    name: "fleet",
    title: "NUMA: all hosts",
    hosts: "several",
    rows: [
      {
        title: "Which jobs NUMA slows down",
        panels: [
          panel("What findings cost", "The part of a job's CPU time that a finding costs at most. 'numa jobs' on the host says the same in words.",
            "percentunit", ["topk(10, numakit_finding{HOST})", "{{instance}}, {{job}}: {{rule}}"]),
          panel("Time at remote memory", "Threads that wait for memory of other nodes, in CPUs, of the ten jobs with most. Absent where samples are not permitted.",
            "none", [`topk(10, ${sum("instance, job", rate("numakit_job_memory_time_seconds_total", 'memory="remote"'))})`, "{{instance}}, {{job}}"]),
          awayJobs,
          panel("Findings without a cost", "What is wrong with a job where samples are missing to tell what it costs.",
            "none", ["count by (instance, job, rule) (numakit_finding_without_cost{HOST})", "{{instance}}, {{job}}: {{rule}}"]),
        ],
      },
      { title: "Which hosts have memory far from their programs", panels: ofHosts },
      {
        title: "What cannot be seen",
        panels: [
          panel("Hosts that do not answer", "Targets of the job numa whose last scrape failed.",
            "none", ['count(up{HOST,job="numa"} == 0) or vector(0)', "hosts"]),
          panel("Absent values", "What a host cannot measure; the label reason says why.",
            "none", ["count by (instance, what) (numakit_absent{HOST})", "{{instance}}: {{what}}"]),
          panel("Samples lost", "Samples that were due and not taken, as a host was too busy.",
            "cps", [sum("instance", rate("numakit_samples_lost_total")), "{{instance}}"]),
        ],
      },
    ],
  },
  {
    name: "host",
    title: "NUMA: one host",
    hosts: "one",
    rows: [
      {
        title: "Where allocations go",
        panels: [
          panel("Allocations by kind", "Local and remote: by CPUs of the node and of others. Missed: meant for a node that was full. Interleaved: spread as a policy asks.",
            "pps", [sum("kind", rate("numakit_node_allocations_total")), "{{kind}}"]),
          panel("Remote share by node", "Of what each node's memory gave, the part that went to CPUs of other nodes.",
            "percentunit", [remoteShare(PLACE), place]),
          panel("Memory marked and moved by NUMA balancing", "Marked pages fault at their next use; those used from another node may be moved.",
            "Bps",
            [sum("instance", rate("numakit_balancing_marked_bytes_total")), "marked"],
            [sum("instance", rate("numakit_balancing_moved_bytes_total")), "moved"]),
        ],
      },
      {
        title: "What each node has",
        panels: [
          panel("Free memory", "A node without free memory sends allocations elsewhere.",
            "bytes", [sum(PLACE, memory("free")), place]),
          panel("Memory by state", "Anonymous memory of programs, and the page cache of files.",
            "bytes", [sum(`${PLACE}, state`, 'numakit_node_memory_bytes{HOST,state=~"file|anonymous"}'), `${place}, {{state}}`]),
          panel("Busy CPUs", "CPU time of programs and of the kernel for them, in CPUs of the node.",
            "none", [busy(PLACE), place]),
          panel("Busy part of CPUs", "One busy node beside idle ones: threads are bound there, or memory is.",
            "percentunit", [`${busy(PLACE)} / ${sum(PLACE, "numakit_node_cpus{HOST}")}`, place]),
        ],
      },
      {
        title: "What memory management costs",
        panels: [
          panel("Waiting", "The part of the time in which at least one thread waited.",
            "percentunit", [sum("resource", rate("numakit_pressure_seconds_total")), "{{resource}}"]),
          panel("Huge page faults", "Refused: no huge page was free, so small ones were given.",
            "cps", [sum("result", rate("numakit_huge_page_faults_total")), "{{result}}"]),
          panel("Reclaim", "Memory whose pages were looked at to free some: by kswapd beside programs, directly while an allocation waits.",
            "Bps", [sum("by", rate("numakit_reclaim_scanned_bytes_total")), "{{by}}"]),
          panel("Compaction", "Allocations that waited while memory was compacted.",
            "cps", [sum("instance", rate("numakit_compaction_stalls_total")), "waited"]),
          panel("numa serve", "What observing costs: its CPU time, in CPUs.",
            "percentunit", [sum("instance", rate("numakit_own_cpu_seconds_total")), "CPU"]),
        ],
      },
    ],
  },
  {
    name: "job",
    title: "NUMA: jobs of a host",
    hosts: "one",
    hasJob: true,
    rows: [
      {
        title: "What a job waits for",
        panels: [
          panel("Findings", "The part of the job's CPU time that each finding costs at most.",
            "percentunit", [`numakit_finding{HOST,${jobs}}`, "{{job}}: {{rule}}"]),
          panel("Time at memory", "Threads that wait for local and for remote memory, in CPUs. Absent where samples are not permitted.",
            "none", [ofJob("job, memory", "numakit_job_memory_time_seconds_total"), "{{job}}: {{memory}}"]),
          panel("Contended lines", "Threads that wait for cache lines that others write, in CPUs.",
            "none", [ofJob("job", "numakit_job_contended_seconds_total"), "{{job}}"]),
          panel("Waiting for a CPU", "Threads that are ready and have no CPU: more threads than CPUs, or than the quota of the job.",
            "none", [ofJob("job", "numakit_job_cpu_wait_seconds_total"), "{{job}}"]),
        ],
      },
      {
        title: "Where it is",
        panels: [
          panel("CPU time by node", "In CPUs. Compare it with the memory by node: they should have the same shape.",
            "none", [ofJob(`job, ${PLACE}`, "numakit_job_node_cpu_seconds_total"), `{{job}}, ${place}`]),
          panel("Memory by node", "Resident memory. Memory on nodes without CPU time of the job is remote.",
            "bytes", [sum(`job, ${PLACE}`, `numakit_job_node_memory_bytes{HOST,${jobs}}`), `{{job}}, ${place}`]),
          panel("Memory away from its threads", "The part of the memory by node that is not where the CPU time by node is. 0 is best; memory spread over all nodes of a job that runs on all of them is away too.",
            "percentunit", [awayMemory(jobs), "{{job}}"]),
          panel("Nodes that its CPUs may be on", "By the CPU mask of its busiest process. One node is enough for a job with few threads.",
            "none", [`numakit_job_mask_nodes{HOST,${jobs}}`, "{{job}}"]),
          panel("CPU time", "In CPUs.", "none", [ofJob("job", "numakit_job_cpu_seconds_total"), "{{job}}"]),
          panel("Processes", "Of the job.", "none", [`numakit_job_processes{HOST,${jobs}}`, "{{job}}"]),
        ],
      },
    ],
  },
  {
    name: "compare",
    title: "NUMA: two hosts side by side",
    hosts: "two",
    rows: [{ title: "The same work on two hosts, or before and after a change on one of two", panels: [...ofHosts, awayJobs] }],
  },
];
