// The reminders of macOS's application as JSON, in the shape that `reminders-cli` has.
// osascript -l JavaScript reminders.js open|all
function run(argv) {
  const lists = Application("Reminders").lists();
  const pad = (number) => String(number).padStart(2, "0");
  // The day and time of this machine's clock: what the application shows.
  const day = (d) => `${d.getFullYear()}-${pad(d.getMonth() + 1)}-${pad(d.getDate())}`;
  const time = (d) => `${day(d)}T${pad(d.getHours())}:${pad(d.getMinutes())}:${pad(d.getSeconds())}`;
  const found = [];
  for (const list of lists) {
    const name = list.name();
    found.push({ list: name });
    const some = argv[0] === "all" ? list.reminders : list.reminders.whose({ completed: false });
    // One event for each property of a whole list: one for each reminder takes minutes.
    const all = {};
    for (const key of ["id", "name", "body", "dueDate", "alldayDueDate", "priority", "completed", "completionDate"]) {
      all[key] = some[key]();
    }
    all.id.forEach((id, i) => {
      const allDay = all.alldayDueDate[i];
      const due = all.dueDate[i];
      found.push({
        list: name,
        externalId: id,
        title: all.name[i],
        notes: all.body[i],
        dueDate: allDay ? day(allDay) : due ? time(due) : null,
        priority: all.priority[i],
        isCompleted: all.completed[i],
        completionDate: all.completionDate[i] ? time(all.completionDate[i]) : null,
      });
    });
  }
  return JSON.stringify(found);
}
